package remote

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// messages calls with for what is in a text of the server: a message, or those of an array, which every client must take. It reports
// whether there was one.
func (c *Connection) messages(text []byte, with func(e *jsonrpc.Envelope, line []byte)) (any bool) {
	jsonrpc.OneLine(text)
	line := jsonrpc.Trim(text)
	var e jsonrpc.Envelope
	if jsonrpc.IsArray(line) && e.Scan(line) == nil {
		for at := range jsonrpc.Elements(line) {
			any = c.message(bytes.Clone(at.Of(line)), with) || any
		}
		return any
	}
	return c.message(line, with)
}

// message calls with for one message, read as every client reads it: of a member that is there twice the last one counts, and what
// has a result and the id of a request is its answer, whatever method it names.
func (c *Connection) message(line []byte, with func(e *jsonrpc.Envelope, line []byte)) bool {
	var e, answer jsonrpc.Envelope
	err := e.Scan(line)
	if errors.Is(err, jsonrpc.ErrDuplicateKey) {
		line = jsonrpc.AppendLast(nil, line)
		if err = e.Scan(line); err == nil {
			c.memberTwice.Do(func() {
				c.logf("%s: messages of the server have a member twice; the last one counts", c.opts.Name)
			})
		}
	}
	if err != nil {
		c.logf("not a message (%v): %s", err, excerpt(line))
		return false
	}
	if e.Kind == jsonrpc.Request && (e.Result.Present() || e.Error.Present()) {
		if without := jsonrpc.Delete(nil, line, "method"); answer.Scan(without) == nil && c.asked(&answer, without) != nil {
			e, line = answer, without
		}
	}
	with(&e, line)
	return true
}

// deliver forwards what the server says in the response to m, or outside of any if m is nil. It reports whether the answer to m is
// in it.
func (c *Connection) deliver(m *message, text []byte) (answered bool) {
	c.messages(text, func(e *jsonrpc.Envelope, line []byte) {
		if m == nil {
			c.emit(line)
		} else if c.deliverTo(m, e, line) {
			answered = true
		}
	})
	return answered
}

// deliverTo forwards one message that came in the response to m, and reports whether it is the answer.
func (c *Connection) deliverTo(m *message, e *jsonrpc.Envelope, line []byte) bool {
	if e.Kind == jsonrpc.ErrorResponse && (!e.ID.Present() || jsonrpc.IsNull(e.ID.Of(line))) {
		line = jsonrpc.AppendErrorObject(nil, m.id, e.Error.Of(line)) // in its own response it is about this request
		if e.Scan(line) != nil {
			return false
		}
	}
	if !m.answers(e, line) && c.asked(e, line) == m {
		line = m.withOwnID(e, line)
	}
	if !m.answers(e, line) {
		c.emit(line)
		if m.reopened && mcp.Lookup(e.Method.Of(line)) == mcp.NoteAcknowledged {
			c.tellGap(m)
		}
		return false
	}
	if line = c.noteAnswer(m, e, line); m.quiet != nil {
		m.quiet(line)
	} else {
		c.emit(line)
	}
	return true
}

// asked returns the request in flight that a line answers, or nil: the one with its id, otherwise the one whose number its id has
// as text.
func (c *Connection) asked(e *jsonrpc.Envelope, line []byte) *message {
	if e.Kind != jsonrpc.Response && e.Kind != jsonrpc.ErrorResponse {
		return nil
	}
	m := c.withID(e.ID.Of(line))
	if m != nil && !m.answers(e, line) {
		c.idAsText.Do(func() {
			c.logf("%s: the server answers the request %s as %s, which is taken for the same", c.opts.Name, m.id, e.ID.Of(line))
		})
	}
	return m
}

// withID is the request in flight with a raw id, or with the number that it has as text; nil: there is none.
func (c *Connection) withID(id []byte) *message {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range [][]byte{id, jsonrpc.IntegerText(id)} {
		for _, m := range c.inFlight {
			if id != nil && jsonrpc.SameID(m.id, id) {
				return m
			}
		}
	}
	return nil
}

// noteAnswer takes from an answer what later requests need, and returns it as the client gets it.
func (c *Connection) noteAnswer(m *message, e *jsonrpc.Envelope, line []byte) []byte {
	switch {
	case e.Kind != jsonrpc.Response:
	case m.method == mcp.Initialize:
		result := e.Result.Of(line)
		version, _ := jsonrpc.Unquote(jsonrpc.Find(result, "protocolVersion").Of(result))
		c.mu.Lock()
		c.session.version = version
		c.mu.Unlock()
	case m.method == mcp.ToolsList && m.version != "":
		c.mu.Lock()
		result, dropped := c.session.tools.learn(e.Result.Of(line))
		c.mu.Unlock()
		for _, why := range dropped {
			c.logf("tool left out: %s", why)
		}
		if len(dropped) > 0 {
			return jsonrpc.Replace(nil, line, e.Result, result)
		}
	}
	return line
}

// reply answers a request in the server's place; other messages are only logged.
func (c *Connection) reply(m *message, v decision) {
	if v.act == finish {
		return
	}
	if m.kind != jsonrpc.Request {
		c.logf("%s: %s was not accepted: %s", c.opts.Name, m.what(), cmp.Or(string(v.rpc), v.why))
		return
	}
	line := c.refusal(m, v)
	if v.rpc == nil {
		c.logf("%s: %s: %s", c.opts.Name, m.what(), v.why)
	}
	if m.quiet != nil {
		m.quiet(line)
		return
	}
	c.emit(line)
}

// what is m in words.
func (m *message) what() string {
	switch {
	case m.name == "":
		return "an answer"
	case m.subject != "":
		return m.name + " " + m.subject
	}
	return m.name
}

// refusal is the answer to a request without one from the server. A tool call of unknown outcome gets a tool result,
// because the model reads that.
func (c *Connection) refusal(m *message, v decision) []byte {
	if v.rpc != nil {
		return jsonrpc.AppendErrorObject(nil, m.id, v.rpc)
	}
	data := v.data()
	if m.method == mcp.ToolsCall && !v.undone {
		era := mcp.Legacy
		if m.version != "" {
			era = mcp.Modern
		}
		text := "The tool server did not answer '" + m.subject + "': " + v.why
		if v.tries > 1 {
			text += fmt.Sprintf(". It was called %d times, since that does no harm, and may be called again.", v.tries)
		} else {
			text += ". " + mcp.OutcomeUnknown
		}
		meta := append(append([]byte(`{"`+mcp.MetaOutcome+`":`), data...), '}')
		return jsonrpc.AppendResult(nil, m.id, mcp.ToolText(text, true, era, meta))
	}
	text := c.opts.Name + ": " + v.why
	if v.undone && v.tries == 0 {
		text += " (the request was not carried out)"
	}
	return jsonrpc.AppendError(nil, m.id, jsonrpc.InternalError, text, data)
}

// data is the machine-readable form of the text.
func (v decision) data() []byte {
	data := append([]byte(`{"reason":`), strconv.Quote(v.label)...)
	if v.undone && v.tries == 0 {
		data = append(data, `,"delivered":"no"`...)
	} else {
		data = append(data, `,"delivered":"unknown"`...)
	}
	data = append(data, `,"retryable":`...)
	data = strconv.AppendBool(data, v.undone || v.tries > 1)
	if v.after > 0 {
		data = append(data, `,"retryAfterMs":`...)
		data = strconv.AppendInt(data, v.after.Milliseconds(), 10)
	}
	return append(data, '}')
}

// tellGap sends change notifications after a broken notification stream was resumed, since changes may have been missed.
func (c *Connection) tellGap(m *message) {
	wants := jsonrpc.FindPath(m.line, "params", "notifications").Of(m.line)
	for _, l := range mcp.Announced {
		if l.In(wants) {
			c.emit(mcp.ChangedLine(l, m.id))
		}
	}
	uris := jsonrpc.Find(wants, "resourceSubscriptions").Of(wants)
	for uri := range jsonrpc.Elements(uris) {
		c.emit(mcp.UpdatedLine(uri.Of(uris), m.id))
	}
}
