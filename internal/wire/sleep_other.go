//go:build unix && !linux && !outlive_stream

package wire

import "golang.org/x/sys/unix"

const lingerFor = 0

// mayLinger: there is one way to sleep here.
func mayLinger() bool { return false }

// sleep waits for a descriptor; it returns how many are ready, 0 or less for an interruption.
func (l *Loop) sleep() int {
	n, _ := unix.Poll(l.fds, -1)
	return n
}

func sysRead(fd int, p []byte, _ bool) (int, error)  { return unix.Read(fd, p) }
func sysWrite(fd int, p []byte, _ bool) (int, error) { return unix.Write(fd, p) }
