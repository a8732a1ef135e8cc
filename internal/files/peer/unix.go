package peer

import (
	"fmt"
	"net"
)

// Unix returns the user id of the other end of a Unix socket; for a client it is the user of the listening process.
// The error is [ErrUnknown] on Windows.
func Unix(conn *net.UnixConn) (uid int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("ask for the peer: %w", err)
	}
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = userOf(int(fd)) }); err != nil {
		return 0, fmt.Errorf("ask for the peer: %w", err)
	}
	return uid, asked
}
