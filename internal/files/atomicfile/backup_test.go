package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// There is one back-up for each content, and none once the file has that content again.
func TestBackups(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "f")
	writeFile(t, path, "one")
	first, err := Backup(path, []byte("one"), noon)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Backup(path, []byte("one"), noon.Add(time.Hour)); err != nil || again != first {
		t.Errorf("a second back-up of the same: %s, %v", again, err)
	}
	if err := Replace(path, []byte("one"), []byte("two")); err != nil {
		t.Fatal(err)
	}
	second, err := Backup(path, []byte("two"), noon) // in the same second
	if err != nil || second == first || content(t, first) != "one" || content(t, second) != "two" {
		t.Fatalf("%s, %s, %v", first, second, err)
	}
	other := filepath.Join(folder, "f.outlive-backup-made-by-hand")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	dropped, err := DropBackups(path, []byte("one"))
	if err != nil || len(dropped) != 1 || dropped[0] != first {
		t.Errorf("dropped %q, %v", dropped, err)
	}
	if got, want := names(t, folder), "f "+filepath.Base(second)+" "+filepath.Base(other); got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
}

// Of a file that is not there, nothing is kept and nothing dropped.
func TestBackupOfNothing(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "f")
	if kept, err := Backup(path, nil, noon); kept != "" || err != nil {
		t.Errorf("kept %q, %v", kept, err)
	}
	writeFile(t, path, "")
	if _, err := Backup(path, []byte{}, noon); err != nil {
		t.Fatal(err)
	}
	if dropped, err := DropBackups(path, nil); dropped != nil || err != nil {
		t.Errorf("dropped %q, %v", dropped, err)
	}
	if _, err := Backup(filepath.Join(folder, "gone"), []byte("text"), noon); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a back-up of a file that is gone: %v", err)
	}
}
