package remote

import (
	"net/http"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Defaults of [Options].
const (
	// DefaultMaxMessage is the longest message taken from a server, in bytes: a TypeScript client closes its connection at 10 MiB.
	DefaultMaxMessage = 10<<20 - 64<<10
	// DefaultConnectTimeout is how long name resolution with connecting, and the TLS handshake, may take each.
	DefaultConnectTimeout = 10 * time.Second
	// DefaultNoteTimeout is how long a server may take to accept a notification or an answer.
	DefaultNoteTimeout = 30 * time.Second
	// DefaultGrace is how long requests in flight may still be answered when the connection is known to be lost.
	DefaultGrace = time.Second
	// DefaultCloseTimeout is how long the end of a session may take to tell.
	DefaultCloseTimeout = 2 * time.Second
)

// Options say where a server is and how it is spoken to. The zero value of each field but URL is its default.
type Options struct {
	// URL is the MCP endpoint, http or https.
	URL string
	// Name is what the server is called in errors. "": the URL's host.
	Name string
	// Headers are sent with every request to the URL's origin.
	Headers map[string]string
	// Bearer is a token that is sent as it is; OAuth is not used then.
	Bearer string
	// OAuth gets and renews tokens; shared by all connections to this server. nil: what needs authorization is refused.
	OAuth *OAuth

	// Transport carries the requests; to be shared by connections to one server. nil: one of its own, which knows the proxy
	// settings of the environment.
	Transport http.RoundTripper

	MaxMessage     int           // longest message of the server in bytes, 0: DefaultMaxMessage
	ConnectTimeout time.Duration // 0: DefaultConnectTimeout; has no effect with a Transport
	NoteTimeout    time.Duration // 0: DefaultNoteTimeout
	Grace          time.Duration // 0: DefaultGrace
	CloseTimeout   time.Duration // 0: DefaultCloseTimeout

	// Log takes what a process would write to its stderr: one line without newline. It must not block. nil: nobody reads it.
	Log func(line string)
}

// Events are what a connection says. They are called from its goroutines and must not block; Line and End one at a time and in order.
type Events struct {
	// Line is one message of the server without a newline in it. The slice is the receiver's to keep.
	Line func(line []byte)
	// Repeat asks whether a request may be sent once more that the server may have carried out already: why says in words what
	// happened. reply may be called from any goroutine, once; it is not needed after the end. nil: what only reads, by its method.
	Repeat func(id []byte, method mcp.Method, why string, reply func(bool))
	// End is the last call. nil: [Connection.Close] was asked for and what was in flight is done. Otherwise the reason, which
	// was logged before; [ErrKilled] after [Connection.Kill].
	End func(err error)
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.ConnectTimeout, DefaultConnectTimeout)
	def(&o.NoteTimeout, DefaultNoteTimeout)
	def(&o.Grace, DefaultGrace)
	def(&o.CloseTimeout, DefaultCloseTimeout)
	if o.MaxMessage == 0 {
		o.MaxMessage = DefaultMaxMessage
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	return o
}
