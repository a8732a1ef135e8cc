//go:build unix

package agentrun

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// writeAll writes everything. A terminal or pipe is shared with other programs, and one of them may have made it answer
// "try again" instead of waiting: then we wait here.
func writeAll(f *os.File, b []byte) error {
	for {
		n, err := f.Write(b)
		if !errors.Is(err, unix.EAGAIN) {
			return err
		}
		b = b[n:]
		err = on(f, func(fd uintptr) error {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
			return err
		})
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
