// Package replica lets several gateways of one configuration be one for their clients: behind any load balancer each of them
// takes any request, and one that is killed takes nothing with it.
//
// # Who has what
//
//	client ── load balancer ──┬── replica ──┐
//	                          ├── replica ──┼── core ── servers
//	                          └── replica ──┘
//
// A replica has connections and nothing else: TLS, Host and Origin, tokens and views, limits of connections and bodies. The
// core is a gateway like any other, but that it listens on a Unix socket of the user alone, for replicas only. It has the
// sessions, their streams with what is kept of them for Last-Event-ID, and the servers' processes. There is one core for each
// configuration on a machine. For replicas of other machines it listens at a TCP address instead ([Listener], [Link]).
//
// So every session has one owner, for as long as that lives, whatever becomes of replicas. Nothing of a session is copied,
// nobody adopts one, and there are no two that could both believe to have it. The alternative, a record of each session in a
// common store and an epoch that tells the present owner from a former one, needs a second owner for the processes in any case:
// what a process has in its memory is in no record. And requests in flight, questions of servers and events that nobody has read
// yet would be lost at each change of the owner. So it is used only where the machine of the owner is lost.
//
// # What becomes of what
//
//	a replica is killed    requests that it had end with their connections, and the core goes on with them: a client with an
//	                       event id gets its answer by GET at another replica. Sessions, streams and processes stay
//	the core is killed     the replicas start another at once, if it is one of their machine. Sessions go on from their records (package sessionstore), as
//	                       when a single gateway is killed, with new processes. A request that was sent to it and is not
//	                       answered gets a JSON-RPC error, "outcome unknown", also in a stream that has begun; a notification
//	                       gets 502. GET streams and subscriptions/listen break. What was not yet sent waits for the next core
//	a core elsewhere ends  the same, but whoever has started it starts it again, or another one of several takes its place (package
//	                       fleet/sessions). Requests that were not sent wait for that as long as
//	                       [Options.Patience] says; then they get 503. A machine that vanishes without a word is noticed after
//	                       peer.Silence, by both sides; an interruption for less than half of that only delays
//	a core is stopped      (SIGSTOP, or it hangs) its replicas miss its beats, give it up after [Options.Silence], and look for another one
//	a replica ends         requests in progress are finished, within streamhttp.Options.Grace
//	all replicas have gone the core ends after a while, if a replica has started it
//
// # Whose a session is
//
// A replica authenticates each request, and names the caller to the core: subject, scopes, view, the end of its token. The core
// believes it, because only its own user can reach the socket, or because the replica has the secret, and compares the caller with the session's owner, as
// every gateway does. A header of that name which a client has sent is overwritten.
//
// # Other machines
//
// Replicas and a core on several machines share a secret. [Link] makes of it a key for the core and one for replicas (HKDF), each end
// shows that it has its own in a handshake of TLS 1.3, and accepts the other one and nothing else: names, dates and issuers of
// certificates do not count. A core's side does the handshake in the first Read of a connection, so that one which has not shown
// anything costs what any connection of a stranger does: it is cut off after five seconds, and streamhttp.Options.MaxAnonymous are
// there at once.
//
// # Attendance
//
// A replica keeps one request open at the core ([Replica.Attend]), whose answer does not end. By it the core knows its replicas
// ([Core]), a replica learns at once that the core has ended, and the core tells its replicas to read the configuration again.
//
// # Goroutines
//
// A Replica starts none of its own but those of net/http's transport; Attend runs on its caller's until its context ends. A Core
// has a timer while it has no replicas.
package replica
