package cli

import (
	"os"
	"path/filepath"
	"testing"
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
