package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A log that is followed goes on where its path cannot be looked at for a while.
func TestALogThatCannotBeLookedAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("a line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out bytes.Buffer
	next, n, err := copyNew(&out, file, filepath.Join(path, "below")) // no error of a file that is not there, but on Windows
	if err != nil || next != file || n != 7 || out.String() != "a line\n" {
		t.Errorf("%q, %d bytes, another file: %v, error: %v", out.String(), n, next != file, err)
	}
}
