package peer

import (
	"errors"
	"net/netip"
	"os"
	"strings"
)

// ErrUnknown is returned if the system does not say which user has the other end.
var ErrUnknown = errors.New("the system does not say which user the other end belongs to")

// OursOrRoots reports whether uid is the user of this process, or root, who may do everything anyway.
func OursOrRoots(uid int) bool { return uid == 0 || uid == os.Getuid() }

// IsLoopback reports whether a host always means this machine: an address without brackets, or a name, which is not resolved
// (localhost and what is below it, RFC 6761).
func IsLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}
