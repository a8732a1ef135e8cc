package peer

import "golang.org/x/sys/unix"

// userOf asks the system whose the other end of the Unix socket fd is.
func userOf(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
