package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/keep/restart"
)

// TestReadMarker: what can be in the place of the marker file.
func TestReadMarker(t *testing.T) {
	path := filepath.Join(t.TempDir(), restart.MarkerFile)
	w := &world{opts: Options{MarkerPath: path}}
	read := func(want error) {
		t.Helper()
		if _, err := w.ReadMarker(); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	read(restart.ErrNoMarker)
	written := restart.MarkerRecord{Reason: "r", ExitCode: 42}
	if err := w.WriteMarker(written); err != nil {
		t.Fatal(err)
	}
	if got, err := w.ReadMarker(); err != nil || got.Reason != "r" || got.ExitCode != 42 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte(strings.Repeat(" ", restart.MarkerLimit+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	read(atomicfile.ErrTooLong)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	read(atomicfile.ErrIrregular)
}
