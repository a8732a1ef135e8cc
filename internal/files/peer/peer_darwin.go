package peer

import (
	"time"

	"golang.org/x/sys/unix"
)

// userOf asks the system for the user of the other end of the Unix socket fd.
func userOf(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

// setSilence has a socket break when its peer has not acknowledged for that long what was sent, in whole seconds.
func setSilence(fd uintptr, long time.Duration) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_RXT_CONNDROPTIME, int(long.Seconds()))
}
