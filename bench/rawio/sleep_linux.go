package rawio

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sleep waits for d without giving the processor back to the Go scheduler, so
// that no runtime thread wakes up together with the caller and disturbs what
// the caller measures next.
func Sleep(d time.Duration) {
	left := unix.NsecToTimespec(int64(d))
	for {
		rest := unix.Timespec{}
		_, _, errno := syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&left)), uintptr(unsafe.Pointer(&rest)), 0)
		if errno != unix.EINTR {
			return
		}
		left = rest
	}
}
