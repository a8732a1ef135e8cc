package proxy

import "golang.org/x/sys/unix"

const (
	hungUp  = unix.POLLRDHUP // a socket of which the other end only writes no more
	pending = unix.TIOCINQ   // asks how many bytes are unread
)
