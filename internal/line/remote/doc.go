// Package remote is one MCP server that runs elsewhere and is reached by Streamable HTTP, made to look like a process: lines
// in, lines out, an end. What stands above it (a backend) restarts it as it restarts a process: it opens another [Connection],
// says the handshake again and sends again what may be sent again. So a lost session or a server that cannot be reached any more
// is an end with a reason here, and nothing the client sees. A single request that fails on its way is no end.
//
// All revisions of the protocol are spoken, chosen by what is sent: a line with a version in its _meta is stateless (2026-07-28
// on), initialize begins a session (2025-03-26 … 2025-11-25), and a server that has no such endpoint is tried with the HTTP+SSE
// transport of 2024-11-05.
//
// # What becomes of a request
//
// "Again" is here, after a pause that doubles from 200 ms to 1 s, half of it by chance, or that the server has named in Retry-After, for
// at most 10 s in all. "Twice" is for what the server may have carried out already: again, at most twice more, if it may be done
// twice, which Events.Repeat decides; otherwise answer, unknown. "Answer" is an error to the request's id (for a tools/call whose
// effect is not known a tool result that says so, since that is what the model reads). "End" is the end of the connection: unread
// says that the request counts as never taken ([Connection.Pending]), unknown that it may have been carried out.
//
//	what happened                                        what becomes of it
//	nothing was written: refused, DNS, TLS, timeout      again; End, unread, once nothing but that has happened for 2 s;
//	                                                     answer, not done, after 10 s if other requests go through
//	written, and no answer: reset, 502, 503, 504,        twice; End, unknown, once nothing but failures of the network have
//	  a stream broken off that cannot be resumed         happened for 10 s
//	  the same for initialize, initialized, discover     again; End, unknown, after 10 s
//	  the same with the transport of 2024-11-05          End, unknown; 504 to a request: its answer comes on the stream
//	a stream broken off that can be resumed              resumed by its last event id in a session, then as above
//	500, other 5xx; a stream that simply ends;           twice
//	  a body that is not a message, such as HTML
//	subscriptions/listen ends without an answer          again, without end
//	429, 503 with Retry-After                            again if that fits into 10 s, otherwise answer, not done, with the time
//	404 for a session, but for one that says: no such    End, unread
//	  method or resource; 400 that complains of it
//	401, 403                                             authorization if [Options] has it, then again; otherwise answer
//	any error status with a JSON-RPC error in its body   answer: that error
//	other 4xx, 501 for initialize, or a stream that      the transport of 2024-11-05, otherwise answer with what both gave
//	  names an endpoint
//	501, 505, other 4xx; 3xx to another origin           answer, not done
//	an answer longer than [Options.MaxMessage]           answer, unknown
//
// A 503 with Retry-After counts as not done: the server has refused the request on purpose. One without it
// does not, since proxies say 503 also when the server behind them broke off in the middle.
//
// A GET for a stream that is answered with 404 says that the session has ended only if a ping in the session says it, too: many
// servers without such a stream answer so. A message at the end of a stream counts without the blank line behind it if it is whole.
//
// The machine at the other end may vanish without a word. A connection on which its system acknowledges nothing for 20 s has broken
// off; how long a server works on a call does not matter, nor that some accept a POST of 2024-11-05 only then.
//
// The other requests in flight at an End get [Options.Grace] to be answered. A notification is sent again like a request, and may come
// twice; if the server refuses it, or does not accept it in time, that is logged.
//
// An answer that has the request's number as text ("7" for 7) is the answer, as both official SDKs read it; the client gets its own id.
// So is one in an array, one with a member twice, of which the last counts, and one with the method of its request.
//
// server/discover is a request like any other: whatever a legacy server says to it comes back as an error for its id.
//
// # Credentials
//
// Headers, tokens and the server's own cookies, which are kept in memory as long as the connection, go to the origin of [Options.URL] and
// nowhere else: a redirect to another origin is refused, but for one of the same host from http to https, both at their own port.
// Authorization is OAuth 2.1 as the protocol asks for it ([OAuth]): protected-resource and authorization-server metadata, resource
// indicators, PKCE, dynamic registration, refresh tokens, step-up, the issuer check of RFC 9207; where the browser is on another machine,
// its user copies the address at which it ends. One [OAuth] belongs to all connections to one server; those of several processes share a
// [GrantStore] with a lock, so that a refresh token is used once. The authorization server is the configured one or that of the first
// login, and no address is asked that the MCP server has no business with. Names of servers and resources are compared letter by letter,
// but for the "/" of an empty path (RFC 3986, 6.2.3), and but for metadata whose issuer gives the tokens ([authServer.givesTokens]).
// Metadata that name no authorization server or no resource mean the MCP server itself.
//
// # Libraries
//
// golang.org/x/oauth2 makes the address of the consent page, with PKCE's verifier and challenge. The rest is ours.
//
// The token exchange: the code or the refresh token is used up when the answer comes, and a client that cannot read it has lost the login.
// The types of x/oauth2 (v0.37.0) fail, and keep the answer to themselves, if its JSON calls itself text/plain or the lifetime has a fraction, as
// with some servers (TestTokenAnswer); its TokenSource renews without resource and scope, and keeps the new token in memory only.
//
// Of the official SDK (github.com/modelcontextprotocol/go-sdk v1.8.0, auth and oauthex) nothing is used. It would make the program 1.2 %
// larger and every start of outlive and its keeper 0.15 ms longer: before main, oauthex makes a transport and looks for proxies. And:
//
//   - ParseWWWAuthenticate gives none of several challenges if it cannot read one: Negotiate YII, or scope="a", realm = "x".
//   - GetProtectedResourceMetadata wants the resource's exact name, which only the document tells: it may be one above the endpoint.
//   - GetAuthServerMeta takes a page in place of metadata for a failure and 429 for "there is none", and wants PKCE of servers that
//     are asked for client credentials only.
//   - Both refuse literal private addresses, where an MCP server of the same network may have its authorization server.
//   - RegisterClient fails for members that nobody needs (client_id_issued_at with a fraction, jwks), and its error then has the whole
//     answer, client secret and all.
//   - AuthorizationCodeHandler asks at the MCP server's root if metadata cannot be had just now; knows the first authorization server
//     only; takes issuers for the same that differ in the slash of a path; registers at every login; and prefers a metadata document to the
//     configured client.
//
// # Goroutines
//
// [Open] starts one, which hands the lines on in order and ends after Events.End; it starts one for each request in flight, one for
// the notifications, which go one after another, one for the stream of server messages, and one while that of 2024-11-05 is opened. All have ended when Events.End is called.
// Events are called one at a time from any of them.
package remote
