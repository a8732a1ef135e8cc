//go:build !linux

package peer

import "net/netip"

// TellsTCP reports whether this system says whose a TCP connection is.
func TellsTCP() bool { return false }

// TCP returns [ErrUnknown]: this system is not asked.
func TCP(_, _ netip.AddrPort) (uid int, err error) { return 0, ErrUnknown }
