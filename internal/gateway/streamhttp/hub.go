package streamhttp

import "github.com/outlive-mcp/outlive/internal/protocol/mcp"

// Hub makes sessions.
type Hub interface {
	// Open makes a session for an accepted client. It is called from any goroutine and must not block for long. nil: not
	// now; the client is answered 503 and told to come back.
	Open(Peer) Session
	// Resume makes a session that goes on from what Peer.Keep was last given, perhaps in another process. general is as if it were
	// attached: what it takes is kept until the client listens again. ok is false if the record cannot be used: the session has ended,
	// as far as the client is concerned. Otherwise it is like Open.
	Resume(peer Peer, record []byte, general Stream) (s Session, ok bool)
	// ParamHeaders returns which arguments of a tool must stand in headers too (x-mcp-header, 2026-07-28), nil for none or for a
	// tool that clients of the view do not know. It is called from any goroutine, for each tools/call of the modern era.
	ParamHeaders(view, tool string) []mcp.ParamHeader
}

// Peer describes the client of a session.
type Peer struct {
	// Subject identifies the token: "sub:" and a JWT's sub, or "bearer:" and a digest of a static token, the same
	// after a restart. "": no token was required. A session id is valid only for the subject that opened it.
	Subject string
	// View is the name of all that the client may see, by its token or by the path it has chosen. "": everything. A
	// session id is valid only for the view that it was opened for.
	View string
	// Keep takes what another process needs to go on with the session, one JSON value, in place of what it was given
	// before. It does not block, and what is kept when the answer to initialize is sent is stored before the client gets
	// that. nil: the session ends with this front.
	Keep func(record []byte)
}

// Session takes the messages of one client. Its methods are called from any goroutine, several at once, and must not
// block; Close is called exactly once, and nothing is called after it has begun or while it runs.
type Session interface {
	// Message takes one message of the client: one JSON-RPC request, notification or response, validated, a single line
	// without a newline, never a batch. The session owns line. The answer, progress and questions of a request go to
	// reply, which is nil for notifications and responses.
	//
	// The response to the request ends the reply, and so does Withdraw; later messages are dropped. Requests of one legacy session arrive
	// concurrently if the client sends them so; a message follows another only if the client waited for the answer (202)
	// to that one. Several requests of a batch share a reply.
	Message(line []byte, reply Stream)
	// Attach sets the stream for all other messages: the legacy era's GET stream, one for each session and the same
	// value each time. While no client listens what it takes is kept, within the bounds of the session's store, and
	// delivered when the client comes back. So is the answer to a request whose client has left.
	Attach(Stream)
	// Release says that the client has had no request and no stream here for Options.SessionRelease: its processes may
	// end until it comes back. It is called repeatedly, also while requests run whose client has left.
	Release()
	// Close ends the session: by DELETE, by age, by shutdown, because initialize failed, or because the one message of a
	// modern session is answered or its client has left.
	Close()
}

// Stream takes messages to the client.
type Stream interface {
	// Send takes one JSON-RPC message, a single line; whether it is the response is read from it. It copies, never blocks,
	// may be called from any goroutine and after the client left: then the message is dropped, or kept for resumption.
	Send(line []byte)
	// Withdraw says that one request of the reply, by its raw id, gets no answer, since its client has cancelled it. The reply
	// ends as it does after an answer, or stays open without being in progress. It may be called as Send is.
	Withdraw(id string)
}
