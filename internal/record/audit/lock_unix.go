//go:build unix

package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// closeBeforeRename says that a file must be closed before it can be renamed.
const closeBeforeRename = false

func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func unlock(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
}
