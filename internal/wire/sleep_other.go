//go:build unix && !linux && !outlive_stream

package wire

import (
	"time"

	"golang.org/x/sys/unix"
)

// traffic has nothing to note here: there is one way to sleep.
func (l *Loop) traffic() {}

// sleep waits for a descriptor; it returns how many are ready, 0 or less for a timeout or an interruption.
func (l *Loop) sleep(timeout time.Duration) int {
	ms := -1
	if timeout >= 0 {
		ms = int((timeout + time.Millisecond - 1) / time.Millisecond)
	}
	n, _ := unix.Poll(l.fds, ms)
	return n
}

func sysRead(fd int, p []byte, _ bool) (int, error)  { return unix.Read(fd, p) }
func sysWrite(fd int, p []byte, _ bool) (int, error) { return unix.Write(fd, p) }
