//go:build unix

package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Another program cannot make us read another file, or wait, by what it puts in a file's place.
func TestReadPlain(t *testing.T) {
	folder := t.TempDir()
	file, link, pipe := filepath.Join(folder, "file"), filepath.Join(folder, "link"), filepath.Join(folder, "pipe")
	writeFile(t, file, "12345")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{file: nil, link: ErrIrregular, pipe: ErrIrregular, folder: ErrIrregular, filepath.Join(folder, "none"): os.ErrNotExist} {
		if text, err := ReadPlain(path, 5); !errors.Is(err, want) || want == nil && string(text) != "12345" {
			t.Errorf("%s: %q, %v, want %v", filepath.Base(path), text, err, want)
		}
	}
	if _, err := ReadPlain(file, 4); !errors.Is(err, ErrTooLong) {
		t.Errorf("longer: %v", err)
	}
}
