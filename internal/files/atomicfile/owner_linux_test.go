package atomicfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Root edits a user's file: it stays the user's, and so is the back-up.
func TestOwnerStays(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who alone may give files away")
	}
	path := filepath.Join(t.TempDir(), "f")
	writeFile(t, path, "old")
	const user = 12345
	if err := os.Chown(path, user, user); err != nil {
		t.Skip("needs a file system with owners: ", err)
	}
	backup, err := Backup(path, []byte("old"), noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("old"), []byte("new")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, backup} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != user || st.Gid != user || info.Mode().Perm() != 0o640 {
			t.Errorf("%s belongs to %d:%d, mode %v", name, st.Uid, st.Gid, info.Mode())
		}
	}
}
