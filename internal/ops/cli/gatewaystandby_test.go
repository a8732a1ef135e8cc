package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

// A core goes on with the lease of one that has ended on the same machine, and not with that of a machine whose disk was copied.
func TestLastHolder(t *testing.T) {
	at := filepath.Join(t.TempDir(), "lease")
	if got := lastHolder(at, "a"); got != "" {
		t.Errorf("without a file: %q", got)
	}
	if err := os.WriteFile(at, []byte("a/ABCDEFGH"), 0o600); err != nil {
		t.Fatal(err)
	}
	for machine, want := range map[string]string{"a": "a/ABCDEFGH", "b": "", "": "", "a/": ""} {
		if got := lastHolder(at, machine); got != want {
			t.Errorf("on %q: %q", machine, got)
		}
	}
}

// A core is not given another name than its machine's while the member does not answer.
func TestAwaitMachine(t *testing.T) {
	at := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	member := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"host": "web1"}`))
	})}
	go func() { _ = member.Serve(l) }()
	t.Cleanup(func() { _ = member.Close() })
	registry := fleetRegistry{fleetsocket.Client{Path: at}}
	if name, err := registry.awaitMachine(t.Context()); name != "web1" || err != nil || asked != 3 {
		t.Errorf("%q %v after %d questions", name, err, asked)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_ = member.Close()
	if name, err := registry.awaitMachine(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("%q %v without a member", name, err)
	}
}
