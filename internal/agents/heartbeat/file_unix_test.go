//go:build unix

package heartbeat

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// An agent cannot make the monitor read another file, or block, by what it puts in its file's place.
func TestNoLinksAndPipes(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`{"t":"2026-11-21T02:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "dir.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(filepath.Join(dir, "dir.json")); !errors.Is(err, ErrNoBeat) {
		t.Errorf("a directory: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "link.json")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "pipe.json")); !errors.Is(err, ErrNoBeat) {
		t.Errorf("a pipe: %v", err)
	}
}
