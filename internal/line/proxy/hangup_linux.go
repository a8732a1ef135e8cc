package proxy

import "golang.org/x/sys/unix"

const (
	hungUp  = unix.POLLRDHUP // also set for a socket whose other end has only stopped writing
	pending = unix.TIOCINQ   // ioctl for the number of unread bytes
)
