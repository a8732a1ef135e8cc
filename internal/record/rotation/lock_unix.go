//go:build unix

package rotation

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock reports whether nobody else has the lock. Where a file system has no locks nobody can: it would be waited for at each write, and
// the file would never be rotated.
func tryLock(f *os.File) bool {
	return !errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
}

func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
}

// cut shortens the file that f is open for.
func cut(f *os.File, size int64) error { return f.Truncate(size) }
