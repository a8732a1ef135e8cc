//go:build unix && !linux && !outlive_stream

package lineloop

import "golang.org/x/sys/unix"

const unseenFor = 0

// mayBeUnseen is false: there is only one way to sleep here.
func mayBeUnseen() bool { return false }

// sleep waits for a descriptor; it returns how many are ready, 0 or less for an interruption.
func (l *Loop) sleep() int {
	n, _ := unix.Poll(l.fds, int(l.sleepMost.Milliseconds()))
	return n
}

func sysRead(fd int, p []byte, _ bool) (int, error)  { return unix.Read(fd, p) }
func sysWrite(fd int, p []byte, _ bool) (int, error) { return unix.Write(fd, p) }
