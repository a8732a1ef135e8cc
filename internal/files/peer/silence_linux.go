package peer

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitSilence ends a connection whose peer has not acknowledged for that long what was sent.
func limitSilence(conn syscall.RawConn, long time.Duration) error {
	var failed error
	if err := conn.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(long.Milliseconds()))
	}); err != nil {
		return err
	}
	return failed
}
