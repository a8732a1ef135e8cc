package peer

import (
	"time"

	"golang.org/x/sys/unix"
)

// setSilence has a socket break when its peer has not acknowledged for that long what was sent, in whole seconds.
func setSilence(fd uintptr, long time.Duration) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RXT_CONNDROPTIME, int(long.Seconds()))
}
