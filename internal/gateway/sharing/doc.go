// Package sharing lets several runs of one user share one process of each server. It has both sides of `outlive run
// --shared`.
//
// A [Member] is the run's side. It is an http.RoundTripper, so that the run treats the server as a remote one
// (line/remote). It takes a member at the user's daemon before the first request, and again whenever the daemon has
// ended. A new daemon knows none of the old sessions; the run handles that like any lost session, by repeating its
// handshake.
//
// A [Daemon] is the other side, an http.Handler on a Unix socket. A request for a member names the wanted server
// ([Request]); requests with equal keys ([Request.Key]) get the same server. Each server is a gateway with one server
// in it (gateway.Options.Plain), and each member is an HTTP front of that gateway, so that sessions of different runs
// are separated by the transport. The response to a request for a member lasts as long as the run: each side notices
// the other's end by it. It also carries what the server writes to its stderr.
//
//	POST /v1/seat                takes a member: a [Request]; JSON lines come back, the first says where the member is
//	POST /v1/seat/NAME/restart   restarts the server
//	/v1/seat/NAME/mcp            Streamable HTTP
//
// A server without members ends after [Options.Idle], and the daemon ends with the last server. Access is limited by
// the listener, which its creator makes: the socket belongs to the user alone.
//
// # Goroutines
//
// A Daemon has those of net/http and a timer for each server without members; [Daemon.Done] is closed when nothing is
// left. A Member has one while it is connected, which reads the daemon's response; it ends with the daemon or with
// [Member.Close].
package sharing
