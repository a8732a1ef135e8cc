// Package sharing lets several runs of one user use one process of each server: the two ends of `outlive run --shared`.
//
// A [Seat] is the end of a run. It is an http.RoundTripper, so that to the run the server is one elsewhere (line/remote). It takes a place at
// the user's daemon before the first request, and again whenever the daemon has gone: a new daemon knows no session, which the run
// mends as it mends every lost session, by saying its handshake again.
//
// A [Daemon] is the other end, an http.Handler on a Unix socket. A request for a seat says which server is wanted ([Request]); those that are
// equal ([Request.Key]) get the same server, which is a gateway of its own with one server in it (gateway.Options.Plain), and each seat
// is an HTTP front of that gateway, so that sessions of different runs are apart from the transport on. The response to a request for a seat
// goes on until the run ends, which is how each end hears of the other's end, and carries what the server writes to its stderr.
//
//	POST /v1/seat                takes a seat: a [Request]; JSON lines come back, the first says where the seat is
//	POST /v1/seat/NAME/restart   restarts the server
//	/v1/seat/NAME/mcp            Streamable HTTP
//
// A server without seats ends after [Options.Idle], and the daemon with the last one. Who may connect is decided by whoever makes the
// listener: the socket is the user's alone.
//
// # Goroutines
//
// A Daemon has those of net/http and a timer for each server without seats; [Daemon.Done] is closed when nothing is left. A Seat has one while it
// has a place, which reads what the daemon says; it ends with the daemon or with [Seat.Close].
package sharing
