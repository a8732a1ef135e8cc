package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/line/remote"
)

// A login survives a newer outlive, and a login that a newer outlive has stored is not lost to an older one.
func TestVersionsOfGrants(t *testing.T) {
	f := grantFile(filepath.Join(t.TempDir(), "oauth", "mcp.json"))
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(string(f), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"access_token": "of an outlive without versions"}`)
	g, err := f.Load()
	if err != nil || g.AccessToken != "of an outlive without versions" {
		t.Fatalf("%+v, %v", g, err)
	}
	if err := f.Save(g); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(string(f)); err != nil || !strings.Contains(string(text), `"version": 1,`) {
		t.Errorf("stored %s, %v", text, err)
	}
	if again, err := f.Load(); err != nil || again.AccessToken != g.AccessToken {
		t.Errorf("%+v, %v", again, err)
	}
	write(`{"version": 99, "access_token": "x"}`)
	if _, err := f.Load(); !errors.Is(err, stateversion.ErrNewer) || !strings.Contains(err.Error(), string(f)) {
		t.Errorf("a grant of a newer outlive: %v", err)
	}
}

// The file of a grant has the same name in every version: a login under another one would be lost.
func TestGrantPath(t *testing.T) {
	for url, begin := range map[string]string{"https://mcp.example/mcp": "mcp.example-", "https://例え.テスト/mcp": "-", "%": "server-"} {
		name, sum := filepath.Base(grantPath(url, remote.OAuthOptions{})), "0123456789ab.json"
		if !strings.HasPrefix(name, begin) || len(name) != len(begin)+len(sum) {
			t.Errorf("%s: %s", url, name)
		}
	}
}
