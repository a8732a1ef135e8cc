//go:build unix

package rotation

import (
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
}

// cut shortens the file that f is open for.
func cut(f *os.File, size int64) error { return f.Truncate(size) }
