// Package streamhttp is the server side of MCP's Streamable HTTP transport, both eras on one URL, in front of anything
// that takes JSON-RPC lines (a Hub).
//
// It knows the transport's rules and nothing of servers: HTTP methods, headers, statuses and error bodies; sessions,
// event ids and resumption (2025-03-26 to 2025-11-25); metadata and header validation (2026-07-28); who may come in (Host, Origin,
// bearer tokens, OAuth); and what one client may take (body, sessions, queues, time).
//
// # Two eras
//
// A legacy client begins with initialize and gets a session id; its Session lives until DELETE or until nobody has used
// it for Options.SessionIdle. A modern client has no session: each of its POSTs opens a Session with one message and
// closes it when that is answered, or when the client has left. Which era a POST is of is said by its _meta, then by its
// MCP-Protocol-Version header; initialize without the _meta of the modern era is always legacy.
//
// # Answers
//
// If the first message to a reply stream is the last (a response), it is answered as one JSON body with a length;
// anything else opens an event stream. In a legacy session an event stream has event ids and what was sent on it is kept,
// within Options.StoreBytes a session, so a client whose connection broke gets the rest with GET and Last-Event-ID.
//
// # Libraries
//
// go-oidc and go-jose verify tokens. Which keys count, and where they are, is ours: oidc.NewProvider knows the metadata of OpenID
// Connect only, not RFC 8414; oidc.RemoteKeySet asks again for every key id that is made up, reads answers of any size, and believes
// short RSA keys and those for encryption. Of the official SDK (github.com/modelcontextprotocol/go-sdk v1.8.0, auth) nothing is used:
// the challenge of RequireBearerToken says neither invalid_token nor insufficient_scope, it answers 500 while tokens cannot be checked, and
// takes the first of several Authorization headers; ProtectedResourceMetadataHandler has no answer to HEAD.
//
// # Goroutines and ownership
//
// A message costs no goroutine beside the one net/http runs its request on. That goroutine reads the body, calls the
// Session, waits for what the Stream brings and writes it. Serve starts one goroutine that waits for its context and then
// shuts down; Serve returns when that and every request has ended. A session has one timer, which ends it when idle;
// Front.Close ends all. Neither outlives Close.
//
// A session's streams share one lock, which is leaf data: nothing is called while it is held. The Session and everything
// behind it belong to the Hub; a line handed to it is its own to keep. Streams may be used from any goroutine and for ever:
// after their end they drop what they are sent.
package streamhttp
