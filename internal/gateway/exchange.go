package gateway

import (
	"bytes"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// exchange is one request on its way: a client's, or with then one of the gateway's own.
type exchange struct {
	session *Session
	stream  Stream
	id      []byte // raw, the client's
	method  mcp.Method
	token   []byte // the client's raw progress token; nil: it wants no progress
	logs    bool   // it asked for log messages (modern era)
	uri     []byte // raw, of resources/subscribe and unsubscribe

	link *Link
	upID uint64
	line []byte // until it is sent

	then func(result, err []byte) // nil: the answer is the client's
}

// change replaces a part of a line.
type change struct {
	at   jsonrpc.Span
	with []byte
}

// changed appends line with its changes made to dst. They must not overlap.
func changed(dst, line []byte, changes ...change) []byte {
	at := 0
	for len(changes) > 0 {
		next := 0
		for i := range changes {
			if changes[i].at.Start < changes[next].at.Start {
				next = i
			}
		}
		c := changes[next]
		dst = append(append(dst, line[at:c.at.Start]...), c.with...)
		at = c.at.End
		changes[next] = changes[len(changes)-1]
		changes = changes[:len(changes)-1]
	}
	return append(dst, line[at:]...)
}

// within makes a span of a part one of the whole.
func within(outer, inner jsonrpc.Span) jsonrpc.Span {
	return jsonrpc.Span{Start: outer.Start + inner.Start, End: outer.Start + inner.End}
}

// relay sends a client's request on to l, in which env is the envelope of line, with further changes made to it.
func (e *exchange) relay(l *Link, env *jsonrpc.Envelope, line []byte, changes ...change) {
	e.link, e.upID = l, l.nextID()
	id := rawID(e.upID)
	changes = append(changes, change{env.ID, id})
	if meta := env.Meta.Of(line); meta != nil {
		if at := jsonrpc.Find(meta, "progressToken"); at.Present() {
			e.token = bytes.Clone(at.Of(meta))
			changes = append(changes, change{within(env.Meta, at), id})
		}
		e.logs = jsonrpc.Find(meta, mcp.MetaLogLevel).Present()
	}
	e.line = changed(make([]byte, 0, len(line)+64), line, changes...)
	if l.phase == failed && l.retryAt.After(l.gw.now) {
		l.retryAt = l.gw.now // somebody needs it: now is the time to try again
		l.tick()
	}
	switch l.phase {
	case ready, retired:
		e.send()
	case greeting:
		l.waiting = append(l.waiting, e)
	default:
		e.answerError(l.trouble)
	}
}

// send hands the request to the server.
func (e *exchange) send() {
	l := e.link
	l.calls[e.upID] = e
	line := e.line
	e.line = nil
	l.gw.post(l, line)
	if l.server.Lazy && !l.server.Sleeps && l.scope.era == mcp.Modern && !l.listening {
		l.listening = true
		l.listenForChanges()
	}
}

// over ends the exchange for its session.
func (e *exchange) over() {
	if e.session != nil {
		delete(e.session.calls, string(e.id))
		e.session.gw.idled(e.session)
	}
}

// answer sends the client a raw result.
func (e *exchange) answer(result []byte) {
	e.over()
	e.stream.Send(jsonrpc.AppendResult(nil, e.id, result))
}

// refuse answers the client with an error.
func (e *exchange) refuse(code int, text string) {
	out := jsonrpc.AppendQuoted([]byte(`{"code":`+strconv.Itoa(code)+`,"message":`), text)
	e.answerError(append(out, '}'))
}

// answerError answers with a raw error object.
func (e *exchange) answerError(err []byte) {
	if e.then != nil {
		e.then(nil, err)
		return
	}
	e.over()
	line := append([]byte(`{"jsonrpc":"2.0","id":`), e.id...)
	line = append(append(line, `,"error":`...), err...)
	e.stream.Send(append(line, '}'))
}
