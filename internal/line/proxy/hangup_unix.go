//go:build unix

package proxy

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lookAgain is how soon a stdin is looked at again that has ended and still holds something unread.
const lookAgain = 100 * time.Millisecond

// awaitHangup waits until nobody can write to f any more and all of it was read, without reading from it itself. It returns
// false once quit can be read, or if f is nothing that ends in this way, such as a file.
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
