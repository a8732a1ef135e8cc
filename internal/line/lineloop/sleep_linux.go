//go:build !outlive_stream

package lineloop

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unseenFor is how long after the last traffic the loop sleeps without telling the Go scheduler. The scheduler then
// keeps the loop's processor for it instead of taking it away and giving it back around every message, which halves
// the delay a call sees after a pause for thought. The price, some wake-ups by the runtime's monitor, is paid only
// this long.
const unseenFor = time.Second

// mayBeUnseen: with one processor the other goroutines would have to wait for a loop that sleeps unnoticed.
func mayBeUnseen() bool { return runtime.GOMAXPROCS(0) > 1 }

// unseenMost bounds one sleep that the scheduler does not see. The runtime interrupts it sooner when the collector wants to
// run, and in any case after 10 ms, as every goroutine that seems to run for that long. But it may be unable to: GODEBUG=asyncpreemptoff=1
// switches its signal off, and our parent may have blocked it. Without a bound the collector, and all other
// goroutines with it, would then wait for the next message. A bound below the usual pause between two calls costs each call 30 to
// 60 µs (measured at 17, 20 and 33 ms between calls with a bound of 10 ms).
const unseenMost = 50 * time.Millisecond

// sleep waits for a descriptor; it returns how many are ready, 0 or less for an interruption.
func (l *Loop) sleep() int {
	if l.unseen && l.now.Before(l.busyUntil) {
		return l.sleepUnseen()
	}
	l.bound = unix.NsecToTimespec(int64(l.sleepMost))
	n, _ := unix.Ppoll(l.fds, &l.bound, nil)
	return n
}

// sleepUnseen sleeps in a raw system call, of which the Go scheduler knows nothing.
func (l *Loop) sleepUnseen() int {
	l.bound = unix.NsecToTimespec(int64(unseenMost)) // each time: the kernel leaves in it what was not needed
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&l.fds[0])), uintptr(len(l.fds)),
		uintptr(unsafe.Pointer(&l.bound)), 0, 0, 0)
	if errno != 0 {
		// The signal that interrupts us is often the collector's, which waits for this goroutine. It is heard at the
		// next ordinary call; runtime.Gosched would not do, it forgets the request and the collector waits on.
		return -1
	}
	return int(n)
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
