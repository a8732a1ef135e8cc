// Package peers is the link between equal gateways: several of one configuration, each at its own address with its own servers, behind
// any load balancer. Each of them takes any request, and passes it on to the one that has what it is about.
//
// # Whose what is
//
//	client ── load balancer ──┬── gateway a ── servers      a session is of the gateway that has opened it, and so are its
//	                          │     │ link                  servers' processes. A request for it that comes to another one
//	                          ├── gateway b ── servers      is authorized there, and passed on: package streamhttp
//	                          │     │ link
//	                          └── gateway c ── servers      whose a session is stands in its record: package fleet/sessions
//
// Nothing of a session is copied, and there are no two that both believe to have it. When its gateway has ended, another one goes on
// with it from its record; what servers had in memory is lost. A session of which nothing was asked yet goes to whoever is asked first: a
// load balancer that hashes Mcp-Session-Id cannot bring the request to its gateway that opens it, for that has no id yet.
//
// A request of a client without sessions can be carried out anywhere, but for the next round of one whose server has asked something
// (input_required): that goes on where it began. Its requestState says where, sealed with [Link.StateKey].
//
// # Who may
//
// The gateway that a client reaches authenticates it, and names it to the other one: subject, scopes, view, the end of its token. That
// believes it, because it has the secret, and compares the caller with the session's owner, as every gateway does. A header of that
// name which a client has sent is overwritten. What was passed on is not passed on again: a gateway that has not what it is asked for
// says so (421).
//
// # The secret
//
// [Link] makes of it a key for who asks and one for who is asked (HKDF). Each end shows that it has its own in a handshake of TLS 1.3, and
// accepts the other one and nothing else: names, dates and issuers of certificates do not count. The side that is asked does the
// handshake in the first Read of a connection, so that one which has not shown anything costs what any connection of a stranger does: it
// is cut off after five seconds, and streamhttp lets only so many be there at once.
//
// # Goroutines
//
// None but those of net/http's transport.
package peers
