// Package streamhttp is the server side of MCP's Streamable HTTP transport, both eras on one URL, in front of anything
// that takes JSON-RPC lines (a Hub).
//
// It has the transport's rules and knows nothing of servers: HTTP methods, headers, statuses and error bodies; sessions,
// event ids and resumption (2025-03-26 to 2025-11-25); metadata and header validation (2026-07-28); access control
// (Host, Origin, bearer tokens, OAuth); and limits for each client (body, sessions, queues, time), of which
// one token leaves something to others.
//
// # Two eras
//
// A legacy client begins with initialize and gets a session id; its Session lives until DELETE or until it is unused for
// Options.SessionIdle. A modern client has no session: each POST opens a Session with one message and closes it when
// that is answered, or when the client has left. The era of a POST is given by its _meta, then by its
// MCP-Protocol-Version header; initialize without the _meta of the modern era is always legacy.
//
// # Sessions that outlive the front
//
// With Options.Store a legacy session is stored when it begins and when what the Hub keeps of it changes, never for other
// messages. A request with a session id that is not known here looks there: if the record belongs to the caller, the Hub resumes
// the session. A front that ends leaves its sessions to the next one. [Front.Hold] prepares a front for a successor in the
// same process: it ends what is in progress and leaves further requests unread in their connections.
//
// # Views
//
// A client sees everything, or one view: the one that its token or subject is bound to, or the one whose path below
// [Path] it has chosen. The front finds out which; the Hub shows it no more than that.
//
// # Several gateways
//
// With Options.Peers a front is one of several that are equal, each with its own Hub. A request for a session that another one has
// (Store.Load says where) is authorized here and passed on there, over Peers.Transport; what that one says is passed back as it comes. So is
// the next round of a modern client's call (rounds.go). Who is asked believes whose a request is, and passes nothing on. A session of which
// nothing was asked yet is given to whoever passes its first request on.
//
//	the other has it no more     it says so (421), and it is looked up again, here or elsewhere; so does one that has begun another time
//	it cannot be reached         that is looked up each second, for 30 s. When its time is over (Elsewhere.Over) the session goes on here
//	it is lost after it was asked  a request is answered "outcome unknown", also in a stream that has begun; a notification gets 502
//	we have no sessions now      (Peers.Time) requests for them get 503, a stream is held open; what we were asked before is answered
//	                             "outcome unknown": nobody gets an answer of a gateway that has a session no more
//
// # Answers
//
// If the first message to a reply stream is the last (a response), it is sent as one JSON body with a length; anything
// else opens an event stream. In a legacy session an event stream has event ids and its messages are kept, within
// Options.StoreBytes a session, so that a client whose connection broke gets the rest with GET and Last-Event-ID.
//
// # Libraries
//
// go-oidc and go-jose verify tokens. Finding and selecting keys is ours: oidc.NewProvider knows only the metadata of
// OpenID Connect, not RFC 8414; oidc.RemoteKeySet fetches again for every invented key id, reads answers of any size,
// and accepts short RSA keys and those for encryption. Of the official SDK (github.com/modelcontextprotocol/go-sdk
// v1.8.0, auth) nothing is used: the challenge of RequireBearerToken has neither invalid_token nor insufficient_scope,
// it answers 500 while tokens cannot be checked, and takes the first of several Authorization headers;
// ProtectedResourceMetadataHandler does not answer HEAD.
//
// # Goroutines and ownership
//
// A message costs no goroutine beside net/http's own, which reads the body, calls the Session, waits for the Stream's
// messages and writes them. Serve starts one goroutine for each listener; it returns when these and every request have
// ended. A session has one timer, which ends it when idle; Front.Close ends all. One goroutine writes to the Store while
// there is something to write. A request that is passed on has one that ends it, and an endless one a second. None of them outlives Close.
//
// A session's streams share one lock, under which nothing is called but the count of the bytes under way. The Session and everything behind it belong to the
// Hub, which owns the lines it gets. Streams may be used from any goroutine at any time: after their end they drop
// messages.
package streamhttp
