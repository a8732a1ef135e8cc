package peer

import (
	"time"

	"golang.org/x/sys/windows"
)

// userOf returns [ErrUnknown]: Windows does not provide it.
func userOf(int) (uid int, err error) { return 0, ErrUnknown }

// tcpMaxRT is TCP_MAXRT of ws2ipdef.h.
const tcpMaxRT = 5

// setSilence has a socket break when its peer has not acknowledged for that long what was sent, in whole seconds.
func setSilence(fd uintptr, long time.Duration) error {
	return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_TCP, tcpMaxRT, int(long.Seconds()))
}
