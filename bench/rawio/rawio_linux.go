// Package rawio holds the system calls that the benchmark's client and its byte relay are made of: read, write, poll and
// sleep, on raw descriptors.
//
// They bypass the Go scheduler: the calling thread keeps its processor while it waits. That is the cheapest way to wait that
// Go has, and it is for programs that do nothing else: as long as one waits so, the runtime's monitor thread never sleeps,
// which costs some 300 wake-ups a second. The package starts no goroutine, and is there on Linux only.
package rawio

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Read reads once from fd into b, which must not be empty; 0 without an error
// is the end of the stream.
func Read(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return result(n, errno)
}

// Write writes once to fd from b, which must not be empty, and returns how
// many bytes were taken.
func Write(fd int, b []byte) (int, error) {
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return result(n, errno)
}

// Poll waits, without a limit, until one of fds is ready. A signal, such as the
// one by which the garbage collector asks for attention, ends it with EINTR.
func Poll(fds []unix.PollFd) (int, error) {
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), 0, 0, 0, 0)
	return result(n, errno)
}

// result is not inlined because the runtime needs a real call, whose prologue
// it can hook, in a loop that is otherwise all system calls.
//
//go:noinline
func result(n uintptr, errno syscall.Errno) (int, error) {
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// Sleep waits for d without giving the processor back to the Go scheduler, so that no runtime thread wakes up together
// with the caller and disturbs what the caller measures next.
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
