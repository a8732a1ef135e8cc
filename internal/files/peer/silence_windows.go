package peer

import (
	"time"

	"golang.org/x/sys/windows"
)

// tcpMaxRT is TCP_MAXRT of ws2ipdef.h.
const tcpMaxRT = 5

// setSilence has a socket break when its peer has not acknowledged for that long what was sent, in whole seconds.
func setSilence(fd uintptr, long time.Duration) error {
	return windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_TCP, tcpMaxRT, int(long.Seconds()))
}
