// Package remote is one MCP server that runs elsewhere and is reached by Streamable HTTP, made to look like a process: lines
// in, lines out, an end. What stands above it (a backend) restarts it as it restarts a process: it opens another [Connection],
// says the handshake again and sends again what may be sent again. So a lost session, a server that cannot be reached or a
// broken stream is an end with a reason here, and nothing the client sees.
//
// All revisions of the protocol are spoken, chosen by what is sent: a line with a version in its _meta is stateless (2026-07-28
// on), initialize begins a session (2025-03-26 … 2025-11-25), and a server that has no such endpoint is tried with the HTTP+SSE
// transport of 2024-11-05.
//
// # What becomes of a request
//
// "Again" is here, with a pause, a few times. "Answer" is an error to the request's id (for a tools/call whose effect is not known a
// tool result that says so, since that is what the model reads). "End" is the end of the connection: unread says that the request
// counts as never taken ([Connection.Pending]), unknown that it may have been carried out.
//
//	what happened                                        session (legacy)          stateless (modern)
//	nothing was written: refused, DNS, TLS, timeout      again, then End, unread   again, then End, unread
//	  the same for initialize, server/discover           End, unread               End, unread
//	written, and no answer: reset, 502, 503,             End, unknown              again if it may be done twice,
//	  a stream broken off that cannot be resumed                                   otherwise or in the end answer, unknown
//	a stream broken off that can be resumed              resumed by its last event id, then as above
//	subscriptions/listen ends without an answer          –                         again, without end
//	429, 503 with Retry-After                            again if that is soon, otherwise answer with the time to wait
//	404 for a session, 400 that complains of it          End, unread               –
//	401, 403                                             authorization if [Options] has it, then again; otherwise answer
//	any error status with a JSON-RPC error in its body   answer: that error        answer: that error
//	400, 404, 405 for initialize                         the transport of 2024-11-05, otherwise answer
//	other 4xx; 3xx to another origin                     answer: it was not done
//	500, 504, other 5xx; a stream that simply ends;      answer, unknown
//	  a body that is no message
//	an answer longer than [Options.MaxMessage]           answer, unknown
//
// The other requests in flight at an End get [Options.Grace] to be answered. A notification is sent again like a request; if the server
// refuses it, or does not accept it in time, that is logged.
//
// server/discover is a request like any other: whatever a legacy server says to it comes back as an error for its id.
//
// # Credentials
//
// Headers and tokens go to the origin of [Options.URL] and nowhere else: a redirect to another origin is refused. Authorization is
// OAuth 2.1 as the protocol asks for it ([OAuth]): protected-resource and authorization-server metadata, resource indicators, PKCE,
// client id metadata documents, dynamic registration, refresh tokens, step-up, the issuer check of RFC 9207. One [OAuth] belongs to all
// connections to one server, so that a refresh token is used once.
//
// # Goroutines
//
// [Open] starts one, which hands the lines on in order and ends after Events.End; it starts one for each request in flight, one for
// the notifications, which go one after another, and one for the stream of server messages. All have ended when Events.End is called.
// Events are called one at a time from any of them.
package remote
