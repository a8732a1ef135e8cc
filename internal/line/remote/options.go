package remote

import (
	"cmp"
	"net/http"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Defaults of [Options], and limits of time.
const (
	// DefaultMaxMessage is the longest message taken from a server, in bytes: a TypeScript client closes its connection at 10 MiB.
	DefaultMaxMessage = 10<<20 - 64<<10
	// connectTimeout is the time limit of name resolution with connecting, and of the TLS handshake, each.
	connectTimeout = 10 * time.Second
	// DefaultNoteTimeout is how long a server may take to accept a notification or an answer.
	DefaultNoteTimeout = 30 * time.Second
	// DefaultGrace is how long requests in flight may still be answered after the connection is lost.
	DefaultGrace = time.Second
	// closeTimeout is how long ending a session may take.
	closeTimeout = 2 * time.Second
)

// Options describe a server and its connection. The zero value of each field but URL is its default.
type Options struct {
	// URL is the MCP endpoint, http or https.
	URL string
	// Name is the server's name in errors. "": the URL's host.
	Name string
	// Headers are sent with every request to the URL's origin.
	Headers map[string]string
	// OldSSE says that the server speaks nothing but the HTTP+SSE of 2024-11-05. Otherwise that is tried where initialize is refused.
	OldSSE bool
	// Bearer is a token that is sent as it is; OAuth is not used then.
	Bearer string
	// OAuth gets and renews tokens; shared by all connections to this server. nil: no authorization.
	OAuth *OAuth

	// Transport sends the requests; shared by connections to one server. nil: one of its own, with the proxy settings of
	// the environment.
	Transport http.RoundTripper

	MaxMessage  int           // longest message of the server in bytes, 0: DefaultMaxMessage
	NoteTimeout time.Duration // 0: DefaultNoteTimeout
	Grace       time.Duration // 0: DefaultGrace

	// Log gets what a process would write to its stderr: one line without newline. It must not block. nil: dropped.
	Log func(line string)
}

// Events are the callbacks of a connection. They are called from its goroutines and must not block; Line and End one at
// a time and in order.
type Events struct {
	// Line is one message of the server without newlines. The receiver owns the slice.
	Line func(line []byte)
	// Repeat asks whether a request that the server may have processed may be sent again: why describes the failure.
	// reply may be called from any goroutine, once; it is not needed after the end. nil: decided by the method.
	Repeat func(id []byte, method mcp.Method, why string, reply func(bool))
	// End is the last call. nil: after [Connection.Close], when everything in flight is done. Otherwise the reason,
	// which was logged before; [ErrKilled] after [Connection.Kill].
	End func(err error)
}

func (o Options) withDefaults() Options {
	o.NoteTimeout = cmp.Or(o.NoteTimeout, DefaultNoteTimeout)
	o.Grace = cmp.Or(o.Grace, DefaultGrace)
	o.MaxMessage = cmp.Or(o.MaxMessage, DefaultMaxMessage)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}
