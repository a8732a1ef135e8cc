// Package sessions keeps the records of HTTP sessions of equal gateways in the registry of a fleet: each session is of one of them, and
// another one goes on with it when that one has ended. [Store] is a streamhttp.Store.
//
// # Whose a session is
//
// A gateway process holds one lease, that of the address where it takes what others pass on ([Seat], package lease). A record names its
// owner: one process, for one time with its lease ([Owner]). Another gateway may take the session
//
//   - when the owner's time is over: the lease was released, has another holder, or was not renewed for its TTL;
//   - when the owner has given it back ([Store.Release]).
//
// It does so by compare and set: of several that try at once, one has it. Until then it is told where the owner is ([Elsewhere]).
//
//	owner's lease    held ──renewed──> held ──released, or not renewed──> over
//	session          owner's ─────────────────────────────────────────────> whose CAS is first, and its lease holds
//
// A lease alone makes nothing safe: what a former owner has sent may arrive late. So each write names the revision that it replaces, also
// that of a session's end. A late write meets another revision, is not carried out, and who sent it finds another owner there. A gateway that cannot renew its lease gives
// up by its own clock, before anybody else may take its sessions; that clock goes on while the machine sleeps.
//
// # What is in the registry
//
//	lease.gateway.<gateway>:<address>   one for each gateway, package lease
//	lease.gateway.<gateway>             of a core of an older outlive: records without an owner are its own
//	session.<gateway>.<key>             one record
//
// <gateway> is a name that is made of a secret, and a record is encrypted with a key of that secret (AES-256-GCM, with the registry's key as
// additional data). So other machines of the fleet, and whoever runs the engine, can read no record, change none unnoticed, and
// move none to another session. They can delete it, and bring back an older one.
//
// Records of an older outlive are read: their sessions are taken when its core has ended. It cannot read ours, and knows of no session.
//
// # When the engine does not answer
//
// A write is tried again until it was carried out or the lease is lost, for 30 s: an engine that elects a leader takes some
// seconds. One that refuses writes for longer has no room; a session that is there goes on, and the gateway says so. A read that fails is
// an error, by which the client is told to come back. Each attempt takes [answerLimit] at most. Nobody takes a session without the engine.
//
// That there is no such session, or that it is over, is decided by one read: to be certain would take a write for each id that nobody knows.
// A server that leads and was cut off answers reads for up to 20 s more. A gateway that reaches no other one says 404 for a session that was
// opened elsewhere in that time.
//
// # Goroutines
//
// A Seat has one, which waits for its lease and for its end, until [Seat.End], and another one while it waits for the lease. A Store has
// one for each other gateway that it has met, which waits for the end of that one's time, until [Store.Close].
package sessions
