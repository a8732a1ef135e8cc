package gateway

import (
	"bytes"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// heard takes one line of the server. The backend below has validated it.
func (l *Link) heard(line []byte) {
	l.gw.now = l.gw.world.Now()
	env := &l.gw.up
	if env.Scan(line) != nil {
		return
	}
	switch env.Kind {
	case jsonrpc.Response, jsonrpc.ErrorResponse:
		l.answered(line)
	case jsonrpc.Request:
		l.asked(line)
	case jsonrpc.Notification:
		l.told(line)
	}
}

// answered takes an answer to one of our requests.
func (l *Link) answered(line []byte) {
	env := &l.gw.up
	id, err := strconv.ParseUint(string(env.ID.Of(line)), 10, 64)
	e := l.calls[id]
	if err != nil || e == nil {
		return // of a request that was cancelled
	}
	delete(l.calls, id)
	if e.then != nil {
		if env.Kind == jsonrpc.Response {
			e.then(env.Result.Of(line), nil)
		} else {
			e.then(nil, env.Error.Of(line))
		}
		l.endIfIdle()
		return
	}
	e.over()
	if env.Kind == jsonrpc.Response {
		l.noteResult(e, line)
	}
	l.gw.buf = changed(l.gw.buf[:0], line, change{env.ID, e.id})
	e.stream.Send(l.gw.buf)
	l.gw.rest()
	l.endIfIdle()
}

// restMost is the size of a scratch buffer that is kept, in bytes.
const restMost = 1 << 20

// rest lets a buffer of a long line go.
func (g *Gateway) rest() {
	if cap(g.buf) > restMost {
		g.buf = nil
	}
}

// noteResult remembers what the success of a request means for later ones.
func (l *Link) noteResult(e *exchange, line []byte) {
	env := &l.gw.up
	switch e.method {
	case mcp.Subscribe:
		e.session.subscribed(l, e.uri)
	case mcp.Unsubscribe:
		e.session.unsubscribed(e.uri)
	}
	if jsonrpc.EqualString(env.ResultType.Of(line), "input_required") {
		result := env.Result.Of(line)
		l.gw.states.note(jsonrpc.Find(result, "requestState").Of(result), l)
	}
}

// asked takes a request of the server to its client.
func (l *Link) asked(line []byte) {
	env := &l.gw.up
	id := env.ID.Of(line)
	if mcp.Lookup(env.Method.Of(line)) == mcp.Ping {
		l.gw.post(l, jsonrpc.AppendResult(nil, id, []byte("{}")))
		return
	}
	s, stream := l.addressee()
	if s == nil {
		l.gw.post(l, jsonrpc.AppendError(nil, id, jsonrpc.MethodNotFound,
			"the gateway cannot tell which of its clients this is for: configure the server without \"shared\"", nil))
		return
	}
	shown := l.gw.newAsk(l, id, s)
	l.gw.buf = changed(l.gw.buf[:0], line, change{env.ID, shown})
	stream.Send(l.gw.buf)
	l.gw.rest()
}

// addressee is the client that what the server says of its own accord is for, and where to tell it: the stream of its
// only request in flight, if there is one, because then the message belongs to that.
func (l *Link) addressee() (*Session, Stream) {
	var last *exchange
	several := false
	for _, e := range l.calls {
		if e.session == nil || e.method == mcp.Listen {
			continue
		}
		if last != nil && last.session != e.session {
			several = true
		}
		if last == nil || e.upID > last.upID {
			last = e
		}
	}
	switch o := l.scope.owner; {
	case o != nil && last != nil:
		return o, last.stream
	case o != nil:
		return o, o.general
	case last == nil || several || l.scope.era == mcp.Modern:
		return nil, nil
	default:
		return last.session, last.stream
	}
}

// told takes a notification of the server.
func (l *Link) told(line []byte) {
	env := &l.gw.up
	switch m := mcp.Lookup(env.Method.Of(line)); m {
	case mcp.NoteProgress:
		l.progressed(line)
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged:
		l.listChanged(m)
	case mcp.NoteCancelled:
		l.withdrew(line)
	case mcp.NoteResourceUpdated:
		l.updated(line)
	case mcp.NoteAcknowledged:
		// the gateway has acknowledged what it was asked itself
	default:
		if jsonrpc.EqualString(env.Method.Of(line), "notifications/message") {
			l.logged(line)
		} else if o := l.scope.owner; o != nil {
			_, stream := l.addressee()
			stream.Send(line)
		}
	}
}

// progressed hands progress to whoever waits for it, under its own token.
func (l *Link) progressed(line []byte) {
	env := &l.gw.up
	id, err := strconv.ParseUint(string(env.ProgressToken.Of(line)), 10, 64)
	e := l.calls[id]
	if err != nil || e == nil || e.token == nil {
		return
	}
	l.gw.buf = changed(l.gw.buf[:0], line, change{env.ProgressToken, e.token})
	e.stream.Send(l.gw.buf)
}

// logged hands a log message to whom it can belong. The modern era has nothing in the message that says whose it is.
func (l *Link) logged(line []byte) {
	if l.scope.era == mcp.Modern {
		var only *exchange
		for _, e := range l.calls {
			if e.session == nil || e.method == mcp.Listen {
				continue
			}
			if only != nil {
				return
			}
			only = e
		}
		if only != nil && only.logs {
			only.stream.Send(line)
		}
		return
	}
	if l.scope.owner != nil {
		_, stream := l.addressee()
		stream.Send(line)
		return
	}
	level, _ := jsonrpc.Unquote(l.gw.up.Level.Of(line))
	for s := range l.gw.sessions {
		if s.own != nil && severity(level) >= s.severity {
			s.general.Send(line)
		}
	}
}

// severities are the levels of log messages, least first (RFC 5424).
var severities = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func severity(level string) int {
	for i, s := range severities {
		if s == level {
			return i
		}
	}
	return 0
}

// updated tells those who subscribed to it that a resource has changed.
func (l *Link) updated(line []byte) {
	env := &l.gw.up
	uri := env.URI.Of(line)
	if l.scope.era == mcp.Modern {
		meta := env.Meta.Of(line)
		at := jsonrpc.Find(meta, mcp.MetaSubscriptionID)
		id, err := strconv.ParseUint(string(at.Of(meta)), 10, 64)
		if e := l.calls[id]; err == nil && e != nil && e.session != nil {
			e.stream.Send(changed(nil, line, change{within(env.Meta, at), e.id}))
		}
		return
	}
	if o := l.scope.owner; o != nil {
		o.general.Send(line)
		return
	}
	for s := range l.gw.sessions {
		if s.own != nil && s.subscribes(uri) {
			s.general.Send(line)
		}
	}
}

// withdrew tells the client that the server does not wait for an answer any more.
func (l *Link) withdrew(line []byte) {
	env := &l.gw.up
	id := env.RequestID.Of(line)
	for shown, a := range l.gw.asks {
		if a.link == l && bytes.Equal(a.id, id) {
			delete(l.gw.asks, shown)
			a.session.general.Send(changed(nil, line, change{env.RequestID, []byte(shown)}))
			return
		}
	}
	n, err := strconv.ParseUint(string(id), 10, 64)
	if e := l.calls[n]; err == nil && e != nil && e.method == mcp.Listen && e.session != nil {
		delete(l.calls, n)
		e.stream.Send(changed(nil, line, change{env.RequestID, e.id}))
	}
}
