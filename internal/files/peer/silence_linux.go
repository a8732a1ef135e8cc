package peer

import (
	"time"

	"golang.org/x/sys/unix"
)

// setSilence has a socket break when its peer has not acknowledged for that long what was sent.
func setSilence(fd uintptr, long time.Duration) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(long.Milliseconds()))
}
