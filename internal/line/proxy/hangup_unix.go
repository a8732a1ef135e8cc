//go:build unix

package proxy

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is the interval of checks of a stdin that has ended but has unread bytes.
const lookAgain = 100 * time.Millisecond

// awaitHangup waits until no process can write to f any more and everything was read from it. It does not read from f
// itself. It returns false once quit can be read, or if f does not end in this way, such as a file.
func awaitHangup(f, quit *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: hungUp}, {Fd: int32(quit.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil, fds[1].Revents != 0, fds[0].Revents&unix.POLLNVAL != 0:
			return false
		}
		if n, err := unix.IoctlGetInt(int(fds[0].Fd), pending); err != nil || n == 0 {
			return true
		}
		_, _ = unix.Poll(fds[1:], int(lookAgain.Milliseconds()))
	}
}
