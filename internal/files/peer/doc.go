// Package peer finds out which user of this machine has the other end of a connection, and whether that is still there.
//
// For a Unix socket the system provides it (SO_PEERCRED on Linux, LOCAL_PEERCRED on macOS). For TCP within the
// machine, Linux returns the owner of the socket with given addresses (sock_diag), or lists all sockets in
// /proc/net/tcp and tcp6. If the system does not provide it, the error is [ErrUnknown].
//
// A machine may vanish without a word. Connections of [Dialer], and those given to [Watch], break when its system has acknowledged nothing for
// [Silence].
//
// The package keeps nothing, and there is no goroutine. [TCP] may have to read a file with a line for each connection
// of the machine: call it once for each connection, and not on a loop's goroutine.
package peer
