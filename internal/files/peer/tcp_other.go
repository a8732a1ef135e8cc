//go:build !linux

package peer

import "net/netip"

// TellsTCP reports whether this system says which user has the other end of a TCP connection.
func TellsTCP() bool { return false }

// TCP returns [ErrUnknown] on this system.
func TCP(_, _ netip.AddrPort) (uid int, err error) { return 0, ErrUnknown }
