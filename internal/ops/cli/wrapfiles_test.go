package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/ops/clients"
)

// A client that has written its file meanwhile is left its file, and whoever wraps or unwraps is told to try again.
func TestAFileThatItsClientHasChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte("of the client"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := clients.File{Place: clients.Place{Client: clients.Named("cursor"), Path: path}, Text: []byte("as it was read")}
	for verb, write := range map[string]func(io.Writer, clients.File, []byte) error{"wrap": saveWrapped, "unwrap": saveUnwrapped} {
		err := write(io.Discard, file, []byte("ours"))
		if !errors.Is(err, atomicfile.ErrChanged) || !strings.Contains(err.Error(), "is the client running? Nothing was written: try again") {
			t.Errorf("%s: %v", verb, err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != "of the client" {
			t.Errorf("%s: %q, %v", verb, text, err)
		}
	}
}
