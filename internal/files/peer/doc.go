// Package peer tells which user of this machine has the other end of a connection.
//
// For a Unix socket the system itself says it (SO_PEERCRED on Linux, LOCAL_PEERCRED on macOS). For TCP within the machine, Linux
// says the owner of the socket with given addresses (sock_diag), or lists all of them in /proc/net/tcp and tcp6. Where the system
// does not say it, the answer is [ErrUnknown].
//
// Nothing here keeps anything, and there is no goroutine. [TCP] may have to read a file that has a line for each connection of the
// machine: callers ask once for each connection, and not on a loop.
package peer
