package rawio

import (
	"syscall"
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
