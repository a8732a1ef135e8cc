//go:build !outlive_stream

package wire

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lingerFor is how long after the last traffic the loop sleeps without telling the Go scheduler. The scheduler then
// keeps the loop's processor for it instead of taking it away and giving it back around every message, which halves
// the delay a call sees after a pause for thought. The price, some wake-ups by the runtime's monitor, is paid only
// this long; an idle loop sleeps soundly.
const lingerFor = time.Second

// traffic notes that something was read or can be written.
func (l *Loop) traffic() {
	if runtime.GOMAXPROCS(0) > 1 { // with one processor the other goroutines would have to wait for us
		l.busyUntil = time.Now().Add(lingerFor)
	}
}

// sleep waits for a descriptor; it returns how many are ready, 0 or less for a timeout or an interruption.
func (l *Loop) sleep(timeout time.Duration) int {
	if left := time.Until(l.busyUntil); left > 0 && !l.busyUntil.IsZero() {
		if timeout < 0 || left < timeout {
			timeout = left
		}
		ts := unix.NsecToTimespec(int64(timeout))
		n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&l.fds[0])), uintptr(len(l.fds)),
			uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		if errno != 0 {
			// The signal that interrupts us is often the collector's, which waits for this goroutine. It is heard at the
			// next ordinary call; runtime.Gosched would not do, it forgets the request and the collector waits on.
			return -1
		}
		return int(n)
	}
	if timeout < 0 {
		n, _ := unix.Ppoll(l.fds, nil, nil)
		return n
	}
	ts := unix.NsecToTimespec(int64(timeout))
	n, _ := unix.Ppoll(l.fds, &ts, nil)
	return n
}

// sysRead reads from fd; private descriptors never block, so the scheduler need not know.
func sysRead(fd int, p []byte, private bool) (int, error) {
	if !private {
		return unix.Read(fd, p)
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}

// sysWrite is sysRead's counterpart.
func sysWrite(fd int, p []byte, private bool) (int, error) {
	if !private {
		return unix.Write(fd, p)
	}
	n, _, errno := syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), nil
}
