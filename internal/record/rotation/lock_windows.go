package rotation

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// lockAt is far beyond the data: locks are mandatory on Windows, and readers must not be blocked.
const lockAt = 0x7fff_ffff

func tryLock(f *os.File) bool {
	at := windows.Overlapped{OffsetHigh: lockAt}
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at) == nil
}

func unlock(f *os.File) {
	at := windows.Overlapped{OffsetHigh: lockAt}
	_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}

// cut shortens the file that f is open for. A handle that can only append does not have the right to.
func cut(f *os.File, size int64) error {
	other, err := atomicfile.OpenShared(f.Name(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer other.Close()
	ours, err := f.Stat()
	if err != nil {
		return err
	}
	theirs, err := other.Stat()
	if err != nil || !os.SameFile(ours, theirs) {
		return errors.Join(err, os.ErrNotExist)
	}
	return other.Truncate(size)
}
