package gateway

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// exchange is one request in flight: a client's, or with then one of the gateway's own.
type exchange struct {
	num       uint64 // of all exchanges, from 1 on; its id at the server
	session   *Session
	stream    Stream
	id        string // raw, the client's
	method    mcp.Method
	token     []byte    // the client's raw progress token; nil: it wants no progress
	target    string    // method and name of what it calls, where that matters
	turnBy    time.Time // when it waits no longer for its turn; zero: it has not waited
	suspectBy time.Time // of a cancelled one: until when the server may still ask its client
	logs      bool      // it asked for log messages (modern era)
	uri       string    // of resources/subscribe and unsubscribe; of a read of a resource that has another URI here, the raw one here
	ownURI    string    // the one it has at the server; "": the same
	size      int       // of the client's line in bytes

	link *Link
	line []byte // until it is sent

	then func(result, err []byte) // nil: the answer is the client's
}

// lineSlack is how many bytes the changes may add before the line is copied again.
const lineSlack = 64

// relay sends a client's request to l; env is the envelope of line. One more change is applied unless it is absent.
func (e *exchange) relay(l *Link, env *jsonrpc.Envelope, line []byte, also jsonrpc.Change) {
	var digits [20]byte // of 2^64
	var room [3]jsonrpc.Change
	id := strconv.AppendUint(digits[:0], e.num, 10)
	changes := append(room[:0], jsonrpc.Change{At: env.ID, With: id})
	if also.At.Present() {
		changes = append(changes, also)
	}
	if meta := env.Meta.Of(line); meta != nil {
		if at := jsonrpc.Find(meta, "progressToken"); at.Present() {
			e.token = bytes.Clone(at.Of(meta))
			changes = append(changes, jsonrpc.Change{At: at.In(env.Meta), With: id})
		}
		// A client that asks for logs with every request also asks with its endless listen, for which nothing is logged.
		e.logs = e.method != mcp.Listen && jsonrpc.Find(meta, mcp.MetaLogLevel).Present()
	}
	if l.mustAttribute() {
		name := env.Name.Of(line)
		if also.At == env.Name && env.Name.Present() {
			name = also.With // a tool may be called by several names
		}
		e.target = string(env.Method.Of(line)) + string(name)
	}
	out := jsonrpc.Splice(make([]byte, 0, len(line)+lineSlack), line, changes...)
	// A line followed by its newline is written to the server in one piece.
	e.line = append(out, '\n')[:len(out)]
	l.give(e)
}

// give sends the request when the handshake allows it.
func (l *Link) give(e *exchange) {
	e.link = l
	switch {
	case l.phase == ready && !l.awaitsTurn(e) || l.phase == retired:
		e.send()
	case l.phase == ready || l.phase == greeting && l.fails == 0:
		l.waiting = append(l.waiting, e)
	default:
		l.sooner()
		e.answerError(l.unusable())
	}
}

// sendWaiting sends the waiting requests, but those whose turn has not come.
func (l *Link) sendWaiting() {
	waiting := l.waiting
	l.waiting = nil
	for _, e := range waiting {
		if l.awaitsTurn(e) {
			l.waiting = append(l.waiting, e)
			continue
		}
		e.send()
	}
}

// send hands the request to the server.
func (e *exchange) send() {
	l := e.link
	l.calls[e.num] = e
	line := e.line
	e.line = nil
	l.gw.post(l, line)
	if l.server.Lazy && !l.server.Sleeps {
		l.lists.listen()
	}
}

// counts reports whether a client waits for the exchange. Listening, which never ends, does not count.
func (e *exchange) counts() bool { return e.session != nil && e.method != mcp.Listen }

// withdraw cancels the request at its server.
func (e *exchange) withdraw(reason string) {
	l := e.link
	switch {
	case l == nil: // it waits for lists, and is dropped there
	case l.calls[e.num] == e:
		l.forget(e)
		l.attribution.note(e)
		l.gw.post(l, mcp.CancelledLine(rawID(e.num), reason))
		l.endIfIdle()
	default:
		l.waiting = slices.DeleteFunc(l.waiting, func(one *exchange) bool { return one == e })
	}
}

// giveUp answers a request whose client has closed its end and whose server is waited for no longer. Listening has no answer.
func (e *exchange) giveUp() {
	if e.method == mcp.Listen {
		return
	}
	text := "the client has closed its end, and no server was ready in time; the request was not delivered"
	if e.link != nil && e.link.calls[e.num] == e {
		text = "outcome unknown: the client has closed its end, and no answer came in time; the request may have been carried out"
	}
	e.session.cancel(e, hasLeft)
	e.refuse(jsonrpc.InternalError, text)
}

// over ends the exchange for its session.
func (e *exchange) over() {
	if s := e.session; s.calls[e.id] == e {
		delete(s.calls, e.id)
		s.held -= e.size
		if s.whenIdle != nil && s.idle() { // it leaves after the present message
			s.gw.at(s.gw.now)
		}
	}
}

// answer sends the client a raw result.
func (e *exchange) answer(result []byte) {
	e.over()
	e.stream.Send(jsonrpc.AppendResult(nil, []byte(e.id), result))
}

// refuse answers the client with an error.
func (e *exchange) refuse(code int, text string) {
	e.answerError(jsonrpc.ErrorObject(nil, code, text, nil))
}

// answerError answers with a raw error object.
func (e *exchange) answerError(err []byte) {
	if e.then != nil {
		e.then(nil, err)
		return
	}
	e.over()
	if e.method == mcp.Subscribe {
		e.session.unsubscribed(e.uri)
	}
	e.stream.Send(jsonrpc.AppendErrorObject(nil, []byte(e.id), err))
}

// messageOf reads the text of a raw error object, which may be empty; without one it is the whole object.
func messageOf(err []byte) string {
	text, ok := jsonrpc.Unquote(jsonrpc.Find(err, "message").Of(err))
	if !ok {
		return string(bytes.ToValidUTF8(err, nil))
	}
	return text
}

// unusable is the raw error for a server whose handshake has failed: why, and when it is tried next.
func (l *Link) unusable() []byte {
	text := messageOf(l.trouble)
	switch wait := l.retryAt.Sub(l.gw.now); {
	case l.phase == unsupported:
		return l.trouble
	case l.phase == failed && wait > 0:
		text += "; it is tried again in " + wait.Round(100*time.Millisecond).String()
	case l.phase == failed, l.phase == greeting:
		text += "; it is being tried again now"
	}
	out, err := jsonrpc.Set(nil, l.trouble, jsonrpc.AppendQuoted(nil, text), "message")
	if err != nil {
		return jsonrpc.ErrorObject(nil, jsonrpc.InternalError, text, nil)
	}
	return out
}

// inOrder sorts exchanges by age, for a deterministic order.
func inOrder[K comparable](all map[K]*exchange) []*exchange {
	return slices.SortedFunc(maps.Values(all), func(a, b *exchange) int { return cmp.Compare(a.num, b.num) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
