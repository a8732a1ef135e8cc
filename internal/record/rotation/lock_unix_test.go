//go:build unix

package rotation

import (
	"os"
	"path/filepath"
	"testing"
)

// A file system without locks refuses them, as the system does of a file that is closed. Only a lock that another one has is waited for.
func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp_audit.log")
	var files [2]*os.File
	for n := range files {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[n] = f
	}
	if !tryLock(files[0]) || tryLock(files[1]) {
		t.Error("two have the lock at once, or none")
	}
	_ = files[0].Close()
	if !tryLock(files[1]) || !tryLock(files[0]) {
		t.Error("a lock that nobody has is waited for")
	}
}
