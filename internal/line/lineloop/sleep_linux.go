//go:build !outlive_stream

package lineloop

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unseenFor is how long after the last traffic the loop sleeps without notifying the Go scheduler. The scheduler then
// leaves the loop its processor instead of taking it away and returning it around every message, which halves the
// delay of a call after a pause. The cost, some wake-ups by the runtime's monitor, is limited to this time.
const unseenFor = time.Second

// mayBeUnseen is false with one processor: other goroutines would have to wait for a loop whose sleep the scheduler
// does not see.
func mayBeUnseen() bool { return runtime.GOMAXPROCS(0) > 1 }

// unseenMost limits one sleep that the scheduler does not see. The runtime interrupts it earlier when the garbage
// collector needs to run, and always after 10 ms, like every goroutine that seems to run for that long. But it may be
// unable to: GODEBUG=asyncpreemptoff=1 disables its signal, and our parent may have blocked it. Without a limit the
// collector, and with it all other goroutines, would then wait for the next message. A limit below the usual pause
// between two calls costs each call 30 to 60 µs (measured at 17, 20 and 33 ms between calls with a limit of 10 ms).
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

// sleepUnseen sleeps in a raw system call, which the Go scheduler does not see.
func (l *Loop) sleepUnseen() int {
	l.bound = unix.NsecToTimespec(int64(unseenMost)) // set each time: the kernel changes it to the remaining time
	n, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&l.fds[0])), uintptr(len(l.fds)),
		uintptr(unsafe.Pointer(&l.bound)), 0, 0, 0)
	if errno != 0 {
		// The interrupting signal is often the garbage collector's, which waits for this goroutine. The next ordinary
		// call responds to it. runtime.Gosched would not: it drops the request, and the collector keeps waiting.
		return -1
	}
	return int(n)
}

// sysRead reads from fd. Private descriptors never block, so the scheduler need not be notified.
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

// sysWrite writes in the same way as sysRead reads.
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

// rawPipe makes a pipe whose ends do not block.
func rawPipe(p *[2]int) error { return unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK) }
