package collect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Long lines make no page that a browser cannot show: of what is found there is no more than of the end of a log.
func TestSearchIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.log")
	long := "found " + strings.Repeat("x", 10<<10) + "\n"
	if err := os.WriteFile(path, []byte("found first\n"+strings.Repeat(long, 50)+"found last\nnothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := Search(path, "FOUND")
	if err != nil || len(text) > tailShown || !strings.HasSuffix(text, "\nfound last") || strings.Contains(text, "first") {
		t.Errorf("%d bytes, …%q, %v", len(text), text[max(0, len(text)-40):], err)
	}
}
