package peer

import (
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// tcpMaxRT is TCP_MAXRT of ws2ipdef.h.
const tcpMaxRT = 5

// limitSilence ends a connection whose peer has not acknowledged for that long what was sent, in whole seconds.
func limitSilence(conn syscall.RawConn, long time.Duration) error {
	var failed error
	if err := conn.Control(func(fd uintptr) {
		failed = windows.SetsockoptInt(windows.Handle(fd), windows.IPPROTO_TCP, tcpMaxRT, int(long.Seconds()))
	}); err != nil {
		return err
	}
	return failed
}
