package peer

import "golang.org/x/sys/unix"

// userOf asks the system for the user of the other end of the Unix socket fd.
func userOf(fd int) (uid int, err error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
