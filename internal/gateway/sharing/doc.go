// Package sharing lets several runs of one user share one process of each server. It has both sides of `outlive run
// --shared`.
//
// A [Member] is the run's side. It becomes one at the user's daemon before the first connection, and again whenever the
// daemon has ended. For each connection it passes two pipes to the daemon, one for lines each way, which both loops read
// and write like the pipes of a process. So a call costs one relay more than with `outlive run`. (With HTTP between the two
// it took 14 times the time that a run adds, and on the socket itself Go's poller woke up for every line.) The end of the
// pipes is for the run the end of its server: it connects again and repeats its handshake.
//
// A [Daemon] is the other side, an http.Handler on a Unix socket. A request for a member names the wanted server
// ([Request]); requests with equal keys ([Request.Key]) get the same server. Each server is a gateway with one server
// in it (gateway.Options.Plain), and each connection is a session of that gateway (gateway.Runner.Join). The response to a request for a member lasts as long as the run: each side notices
// the other's end by it. It also carries what the server writes to its stderr.
//
//	POST /v1/seat                takes a member: a [Request]; JSON lines come back, the first says where the member is
//	POST /v1/seat/NAME/restart   restarts the server
//	GET /v1/seat/NAME/join       then the run passes two pipes over the connection
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
