package audit

import (
	"os"

	"golang.org/x/sys/windows"
)

// closeBeforeRename says that a file must be closed before it can be renamed. If another process also has it open,
// the rename fails; the file then grows up to twice its limit until that process has ended.
const closeBeforeRename = true

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
