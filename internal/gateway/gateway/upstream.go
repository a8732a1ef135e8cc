package gateway

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Send takes one line of the server, validated by the backend. It is valid during the call only.
func (l *Link) Send(line []byte) {
	l.gw.now = l.gw.world.Now()
	env := &l.gw.up
	if l.phase == ended || env.Scan(line) != nil {
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
	e := l.inFlight(env.ID.Of(line))
	if e == nil { // of a request that was cancelled
		if num, err := strconv.ParseUint(string(env.ID.Of(line)), 10, 64); err == nil {
			delete(l.attribution.cancelled, num)
			l.gw.at(l.gw.now)
		}
		return
	}
	l.forget(e)
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
	l.noteAnswer(e, line)
	buf := append(l.gw.buf[:0], line[:env.ID.Start]...)
	buf = append(append(buf, e.id...), line[env.ID.End:]...)
	if e.ownURI != "" {
		buf = e.withShownURI(line)
	}
	e.stream.Send(buf)
	l.gw.rest(buf)
	l.endIfIdle()
}

// contentsMost limits the contents of one answer whose URI is changed; a user interface has one.
const contentsMost = 16

// withShownURI is the answer to a read, with the URI that the client knows.
func (e *exchange) withShownURI(line []byte) []byte {
	env := &e.link.gw.up
	changes := []jsonrpc.Change{{At: env.ID, With: []byte(e.id)}}
	result := env.Result.Of(line)
	contents := jsonrpc.Find(result, "contents")
	for at := range jsonrpc.Elements(contents.Of(result)) {
		if len(changes) > contentsMost {
			break
		}
		one := at.Of(contents.Of(result))
		if uri := jsonrpc.Find(one, "uri"); jsonrpc.EqualString(uri.Of(one), e.ownURI) {
			changes = append(changes, jsonrpc.Change{At: uri.In(at).In(contents).In(env.Result), With: []byte(e.uri)})
		}
	}
	return jsonrpc.Splice(nil, line, changes...)
}

// inFlight finds the exchange by its raw id or token at the server; nil: none.
func (l *Link) inFlight(raw []byte) *exchange {
	num, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return nil
	}
	return l.calls[num]
}

// restMost is the largest scratch buffer that is kept, in bytes.
const restMost = 1 << 20

// rest keeps a scratch buffer for the next line, unless it has become a long one.
func (g *Gateway) rest(buf []byte) {
	if cap(buf) <= restMost {
		g.buf = buf
	}
}

// noteAnswer records an answer's effect on later requests.
func (l *Link) noteAnswer(e *exchange, line []byte) {
	env := &l.gw.up
	switch {
	case e.method != mcp.Subscribe:
	case env.Kind == jsonrpc.Response:
		e.session.subscribed(l, e.uri)
	default:
		e.session.unsubscribed(e.uri)
	}
	if jsonrpc.EqualString(env.ResultType.Of(line), "input_required") {
		result := env.Result.Of(line)
		l.gw.states.note(jsonrpc.Find(result, "requestState").Of(result), l)
	}
}

// asked handles a request of the server to its client.
func (l *Link) asked(line []byte) {
	env := &l.gw.up
	id := env.ID.Of(line)
	switch {
	case mcp.Lookup(env.Method.Of(line)) == mcp.Ping:
		l.gw.post(l, jsonrpc.AppendResult(nil, id, []byte("{}")))
	case l.scope.era == mcp.Modern:
		l.gw.post(l, jsonrpc.AppendError(nil, id, jsonrpc.MethodNotFound, "a server of this protocol version must not send requests", nil))
	case l.mustAttribute():
		l.attribution.asked(line)
	default:
		l.pass(env, line, l.scope.owner, l.latest())
	}
}

// pass hands a request of the server, of which env is the envelope, to a client.
func (l *Link) pass(env *jsonrpc.Envelope, line []byte, s *Session, during *exchange) {
	id := env.ID.Of(line)
	if s.whenIdle != nil {
		l.gw.post(l, jsonrpc.AppendError(nil, id, jsonrpc.InternalError, hasLeft, nil))
		return
	}
	if len(l.asks()) >= asksMost {
		l.gw.post(l, jsonrpc.AppendError(nil, id, jsonrpc.InternalError,
			fmt.Sprintf("%d requests wait for the client's answers already: this one is not passed on", asksMost), nil))
		return
	}
	a := &ask{link: l, id: bytes.Clone(id), session: s, during: during, shown: l.gw.askID()}
	l.gw.asks = append(l.gw.asks, a)
	changes := append(make([]jsonrpc.Change, 0, 2), jsonrpc.Change{At: env.ID, With: []byte(a.shown)})
	meta := env.Meta.Of(line)
	if at := jsonrpc.Find(meta, "progressToken"); at.Present() {
		a.token = bytes.Clone(at.Of(meta))
		changes = append(changes, jsonrpc.Change{At: at.In(env.Meta), With: []byte(a.shown)})
	}
	buf := jsonrpc.Splice(l.gw.buf[:0], line, changes...)
	a.stream().Send(buf)
	l.gw.rest(buf)
}

// latest is the latest call in flight, nil: none is. Most of what a server with one client says during a call belongs to it.
func (l *Link) latest() (during *exchange) {
	for _, e := range l.calls {
		if e.counts() && (during == nil || e.num > during.num) {
			during = e
		}
	}
	return during
}

// sayToOwner forwards a message of a server with one client.
func (l *Link) sayToOwner(line []byte) {
	if during := l.latest(); during != nil {
		during.stream.Send(line)
		return
	}
	l.scope.owner.general.Send(line)
}

// told takes a notification of the server.
func (l *Link) told(line []byte) {
	env := &l.gw.up
	switch m := mcp.Lookup(env.Method.Of(line)); m {
	case mcp.NoteProgress:
		l.progressed(line)
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged:
		l.lists.changed(m)
		if l.gw.opts.Plain {
			l.tellChanged(line)
		}
	case mcp.NoteCancelled:
		l.withdrew(line)
	case mcp.NoteResourceUpdated:
		l.updated(line)
	case mcp.NoteAcknowledged:
		// otherwise the gateway has acknowledged what it was asked itself
		if l.gw.opts.Plain {
			l.tellListener(line)
		}
	default:
		if jsonrpc.EqualString(env.Method.Of(line), "notifications/message") {
			l.logged(line)
		} else if l.scope.owner != nil {
			l.sayToOwner(line)
		} else if s := l.scope.only(); s != nil && len(l.attribution.cancelled) == 0 {
			s.general.Send(line)
		}
	}
}

// progressed forwards progress under the client's token.
func (l *Link) progressed(line []byte) {
	env := &l.gw.up
	e := l.inFlight(env.ProgressToken.Of(line))
	if e == nil || e.token == nil {
		return
	}
	buf := jsonrpc.Replace(l.gw.buf[:0], line, env.ProgressToken, e.token)
	e.stream.Send(buf)
	l.gw.rest(buf)
}

// logged forwards a log message to its client. A modern message does not say whose it is, but servers log only for
// requests that ask for it: if there is only one such, it is meant.
func (l *Link) logged(line []byte) {
	if l.scope.era == mcp.Modern {
		var only *exchange
		for _, e := range l.calls {
			if !e.logs {
				continue
			}
			if only != nil {
				return
			}
			only = e
		}
		if only != nil {
			only.stream.Send(line)
		}
		return
	}
	if l.scope.owner != nil {
		l.sayToOwner(line)
		return
	}
	severity := max(mcp.Severity(l.gw.up.Level.Of(line)), 0)
	for s := range l.scope.members {
		if severity >= s.severity && s.has(l.server) {
			s.general.Send(line)
		}
	}
}

// updated notifies subscribers that a resource has changed.
func (l *Link) updated(line []byte) {
	env := &l.gw.up
	if l.scope.era == mcp.Modern {
		l.tellListener(line)
		return
	}
	if o := l.scope.owner; o != nil {
		o.general.Send(line)
		return
	}
	uri, _ := jsonrpc.Unquote(env.URI.Of(line))
	for s := range l.scope.members {
		if s.subscription(l.server, uri) != nil {
			s.general.Send(line)
		}
	}
}

// withdrew handles the server's cancellation of a question or of a listen.
func (l *Link) withdrew(line []byte) {
	env := &l.gw.up
	id := env.RequestID.Of(line)
	if len(id) > 0 && l.attribution.drop(bytes.Clone(id)) {
		return
	}
	for _, a := range l.asks() {
		if jsonrpc.SameID(a.id, id) {
			stream := a.stream()
			a.settle()
			stream.Send(jsonrpc.Replace(nil, line, env.RequestID, []byte(a.shown)))
			return
		}
	}
	// The client's listen continues at its other servers.
	if e := l.inFlight(id); e != nil && e.then != nil && e.method == mcp.Listen {
		l.forget(e)
		e.then(nil, nil)
	}
}
