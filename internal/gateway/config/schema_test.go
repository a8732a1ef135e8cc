package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

func resolvedSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	text, err := Schema(policyOfRun)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// plain makes of a tree what encoding/json would.
func plain(n *tree.Node) any {
	switch n.Kind {
	case tree.Null:
		return nil
	case tree.Bool:
		return n.Value == "true"
	case tree.Number:
		var v any
		if json.Unmarshal([]byte(n.Raw), &v) != nil {
			return n.Raw
		}
		return v
	case tree.List:
		out := []any{}
		for _, item := range n.Items() {
			out = append(out, plain(item))
		}
		return out
	case tree.Object:
		out := map[string]any{}
		for _, f := range n.Members() {
			out[f.Key] = plain(f)
		}
		return out
	}
	return n.Raw
}

func TestSchema(t *testing.T) {
	text, err := Schema(policyOfRun)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/outlive.schema.json", string(text))
	if _, err := Schema([]PolicyKey{{Name: "prefix"}}); err == nil {
		t.Error("a policy key that hides a key of servers")
	}
}

// Editors accept what the program accepts, but for what only earlier releases took.
func TestSchemaAcceptsGoodFiles(t *testing.T) {
	schema, seen := resolvedSchema(t), 0
	for _, name := range corpusFiles(t, "good") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		s := fileerror.NewSource(name, []byte(strings.TrimPrefix(string(data), "\ufeff")))
		syntax := syntaxOf(s)
		root, problems := tree.Read(syntax, s)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if format, _ := recognise(syntax, root); format != Outlive {
			continue
		}
		seen++
		if err := schema.Validate(plain(root)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if seen < 4 {
		t.Errorf("%d files", seen)
	}
}

// The schema finds every mistake of structure and of form. It cannot find these: syntax errors, duplicates, conflicts
// between two places, and what depends on the environment.
func TestSchemaRefusesBrokenFiles(t *testing.T) {
	beyond := []string{
		"inputs-unanswered.yaml", "inputs.yaml", "secret-not-shown.yaml", "contradictions.yaml", "rename.yaml", "names.yaml",
		"references.yaml", "client-secret.yaml", "listen-open.yaml", "listen-all.yaml", "auth-empty.yaml", "headers.yaml", "local-users.yaml",
		"views-local.yaml", "views-open.yaml",
	}
	schema, seen := resolvedSchema(t), 0
	for _, name := range corpusFiles(t, "broken") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) != ".yaml" || slices.Contains(beyond, filepath.Base(name)) {
			continue
		}
		s := fileerror.NewSource(name, []byte(strings.TrimPrefix(string(data), "\ufeff")))
		root, problems := tree.Read(tree.YAML, s)
		if root == nil || len(problems) > 0 {
			continue
		}
		seen++
		if schema.Validate(plain(root)) == nil {
			t.Errorf("%s passes", name)
		}
	}
	if seen < 12 {
		t.Errorf("%d files", seen)
	}
}

// The published schema has the keys of this table. Its policy keys are those of the program, which are not known here.
func TestPublishedSchema(t *testing.T) {
	published, err := os.ReadFile("../../../schema/outlive.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	made, err := Schema(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(withoutPolicy(t, made), withoutPolicy(t, published)); diff != "" {
		t.Errorf("schema/outlive.schema.json is not what Schema makes (-made +published):\n%s", diff)
	}
}

// withoutPolicy is a schema without the keys that servers and defaults share.
func withoutPolicy(t *testing.T, text []byte) any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	server := s["$defs"].(map[string]any)["server"].(map[string]any)["properties"].(map[string]any)
	defaults := s["properties"].(map[string]any)["defaults"].(map[string]any)["properties"].(map[string]any)
	for name := range defaults {
		delete(server, name)
		delete(defaults, name)
	}
	return s
}
