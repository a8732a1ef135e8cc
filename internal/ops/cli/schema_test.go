package cli

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
)

//go:generate go test -run TestPublishedSchema . -update

var update = flag.Bool("update", false, "write schema/outlive.schema.json anew")

// Editors check an outlive.yaml with the published schema: it has the keys that the program takes.
func TestPublishedSchema(t *testing.T) {
	const path = "../../../schema/outlive.schema.json"
	made, err := config.Schema(policyKeys())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, published) {
		t.Errorf("%s is stale; go generate ./internal/ops/cli writes it (-published +made):\n%s", path, cmp.Diff(string(published), string(made)))
	}
}

// Every flag of outlive run that is about a server is a key of servers, with a kind that the configuration can check.
func TestPolicyKeys(t *testing.T) {
	kinds := map[string]config.Kind{}
	for _, k := range policyKeys() {
		kinds[k.Name] = k.Kind
	}
	for name, want := range map[string]config.Kind{
		"backoff": config.String, "max-restarts": config.Int, "lazy": config.Bool, "idle-timeout": config.Duration,
		"max-rss": config.Size, "watch": config.List, "retry-tool": config.List, "compat": config.String,
	} {
		if got, ok := kinds[name]; !ok || got != want {
			t.Errorf("%s: kind %d, there %v; want kind %d", name, got, ok, want)
		}
	}
	for _, own := range []string{"name", "mode", "no-tools", "log-level", "log-format", "audit", "help"} {
		if _, ok := kinds[own]; ok {
			t.Errorf("%s is about outlive itself, and a key of servers", own)
		}
	}
}
