package remote

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// message is one line for the server.
type message struct {
	line    []byte
	kind    jsonrpc.Kind
	method  mcp.Method
	name    string // of the method, as it is written
	id      []byte // raw
	subject string // the tool, prompt or URI, for the Mcp-Name header
	version string // the version in its _meta; "": it relies on a handshake

	ctx    context.Context // ends when the answer is not wanted any more, or nothing more follows
	cancel context.CancelFunc

	begun, answered       chan struct{} // closed when it is being sent; when its answer came elsewhere
	beginOnce, answerOnce sync.Once

	quiet    func(line []byte) // takes the answer to a request of our own
	reopened bool              // a listen whose stream has broken off before
	relisted bool              // a call for which the tools were read again

	taken atomic.Bool // the server may have taken it
}

func newMessage(ctx context.Context, line []byte) *message {
	m := &message{line: line, begun: make(chan struct{}), answered: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(ctx)
	var e jsonrpc.Envelope
	if e.Scan(line) != nil {
		return m
	}
	m.kind, m.id = e.Kind, e.ID.Of(line)
	if e.Kind != jsonrpc.Request && e.Kind != jsonrpc.Notification {
		return m
	}
	m.method = mcp.Lookup(e.Method.Of(line))
	m.name, _ = jsonrpc.Unquote(e.Method.Of(line))
	meta := e.Meta.Of(line)
	m.version, _ = jsonrpc.Unquote(jsonrpc.Find(meta, mcp.MetaProtocolVersion).Of(meta))
	subject := e.Name
	if m.method == mcp.ResourcesRead {
		subject = e.URI
	}
	m.subject, _ = jsonrpc.Unquote(subject.Of(line))
	return m
}

// answers reports whether a scanned line is the answer to m.
func (m *message) answers(e *jsonrpc.Envelope, line []byte) bool {
	return (e.Kind == jsonrpc.Response || e.Kind == jsonrpc.ErrorResponse) && jsonrpc.SameID(e.ID.Of(line), m.id)
}

// withOwnID returns an answer to m with m's own id, where the server has made a text of it.
func (m *message) withOwnID(e *jsonrpc.Envelope, line []byte) []byte {
	if m.answers(e, line) {
		return line
	}
	line = jsonrpc.Replace(nil, line, e.ID, m.id)
	_ = e.Scan(line) // only the id is another one
	return line
}

// onTheWire allows the messages after m to be sent.
func (m *message) onTheWire() { m.beginOnce.Do(func() { close(m.begun) }) }

// answerCame records that the answer has come outside of the response (2024-11-05).
func (m *message) answerCame() { m.answerOnce.Do(func() { close(m.answered) }) }

// oneLineText makes a server's text fit for a log line.
func oneLineText(s string) string { return strings.Join(strings.Fields(s), " ") }

// excerpt is the beginning of a server's body, for an error message.
func excerpt(body []byte) string {
	const most = 200
	s := oneLineText(strings.ToValidUTF8(string(body[:min(len(body), 4*most)]), "\uFFFD"))
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}
