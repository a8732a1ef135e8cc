package backend

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// Whose is the client of a request that the backend's client, a gateway, sends.
type Whose struct {
	Client    string // as it calls itself; "": unknown
	Principal string // whom the transport has authenticated; "": nobody
	ID        []byte // raw, as that client knows the request; nil: as the backend does
	Own       bool   // the gateway asks for itself
}

// showing shows the messages to those who watch them with [Options.Tap]. While nobody does, each message costs one atomic load, in on.
// What the client says is shown when it goes to a server, or when it is clear that it does not for now; so a message that is only relayed
// is shown once. Everything that outlive says itself is shown, too.
//
// Behind a bridge the messages are those of the server's era.
type showing struct {
	core       *core
	connection uint64           // tells this backend from others of the same program
	env        jsonrpc.Envelope // scratch of lines that core.env was not scanned from
	method     []byte           // scratch
	client     string           // the name in what the next one points to
	clientIn   *byte
}

// on reports whether anybody watches.
func (s *showing) on() bool { return s != nil && s.core != nil && s.core.opts.Tap.On() }

// conclusionNames are the outcomes by conclusion.
var conclusionNames = [conclusions]tap.Outcome{
	doneWell: tap.OK, doneError: tap.Failed, doneToolError: tap.ToolError, doneRefused: tap.Refused, doneUnknown: tap.Unknown,
	doneTimedOut: tap.TimedOut, doneCancelled: tap.Cancelled,
}

// kinds are the kinds of lines that are shown; an array is shown by its elements.
var kinds = map[jsonrpc.Kind]tap.Kind{
	jsonrpc.Request: tap.Request, jsonrpc.Notification: tap.Notification, jsonrpc.Response: tap.Result, jsonrpc.ErrorResponse: tap.Error,
}

// message is what can be said of a line that env was scanned from.
func (s *showing) message(env *jsonrpc.Envelope, line []byte, from, to tap.Party, gen int) tap.Message {
	m := tap.Message{
		At: s.core.now, Server: s.core.opts.Name, Connection: s.connection, From: from, To: to, Kind: kinds[env.Kind],
		Method: env.Method.Of(line), ID: env.ID.Of(line), Size: len(line), Generation: gen, Body: line,
	}
	if m.Target = env.Name.Of(line); m.Target == nil {
		m.Target = env.URI.Of(line)
	}
	return m
}

// put shows a message; about is the request or progress token that tells whose it is, nil if it is no particular client's.
func (s *showing) put(m *tap.Message, about []byte) {
	if whose := s.core.opts.Whose; whose != nil {
		w := whose(about)
		if m.Client == "" {
			m.Client = w.Client
		}
		if w.ID != nil && len(m.ID) > 0 {
			m.ID = w.ID
		}
		if w.Own && m.From == tap.Client {
			m.From = tap.Outlive
		} else if w.Own && m.To == tap.Client {
			m.To, m.Ends = tap.Outlive, false
		}
	}
	if m.Client == "" {
		m.Client = s.clientName(nil)
	}
	s.core.opts.Tap.Put(m)
}

// clientName is the name of the client in a raw _meta; nil: in what the session knows of it.
func (s *showing) clientName(meta []byte) string {
	if meta == nil {
		known := s.core.session.InitParams
		if known == nil {
			known = s.core.session.Meta
		}
		if len(known) == 0 {
			return ""
		}
		if s.clientIn != &known[0] {
			s.client, _ = s.core.session.ClientName()
			s.clientIn = &known[0]
		}
		return s.client
	}
	info := jsonrpc.Find(meta, mcp.MetaClientInfo).Of(meta)
	name := jsonrpc.Find(info, "name").Of(info)
	if len(name) == len(s.client)+2 && string(name[1:len(name)-1]) == s.client {
		return s.client // most calls are of the same client as the one before
	}
	s.client, _ = jsonrpc.Unquote(name)
	s.clientIn = nil
	return s.client
}

// methodOf is the raw method of a call.
func (s *showing) methodOf(c *call) []byte {
	if c.method == mcp.Other {
		return c.called.Of(c.line)
	}
	s.method = append(append(append(s.method[:0], '"'), c.method.String()...), '"')
	return s.method
}

// ofCall is what can be said of a message of the client's that is kept as a call.
func (s *showing) ofCall(c *call, from, to tap.Party) tap.Message {
	m := tap.Message{
		At: s.core.now, Server: s.core.opts.Name, Connection: s.connection, From: from, To: to, Kind: tap.Notification,
		Method: s.methodOf(c), Target: c.target(), ID: c.id, Size: len(c.line), Generation: s.core.process.gen, Body: c.line,
	}
	if c.isRequest() {
		m.Kind = tap.Request
		if from == tap.Client && c.own() {
			m.From = tap.Outlive
		}
	}
	if meta := c.meta.Of(c.line); meta != nil {
		m.Client = s.clientName(meta)
	}
	return m
}

// own reports whether outlive has asked by itself.
func (c *call) own() bool { return c.came.IsZero() || string(c.id) == eraQuestion }

// target is the raw name of the tool or prompt that a call is about, or the URI of the resource.
func (c *call) target() []byte {
	if c.tool.Present() {
		return c.tool.Of(c.line)
	}
	return c.uri.Of(c.line)
}

// sent shows a message of the client's that is given to the serving process now.
func (s *showing) sent(c *call) {
	if !s.on() {
		return
	}
	m := s.ofCall(c, tap.Client, tap.Server)
	switch {
	case c.sends > 0:
		m.From, m.Note = tap.Outlive, tap.NoteAgain
	case c.shown:
		m.From, m.Note = tap.Outlive, tap.NoteLate
	}
	c.shown = true
	s.put(&m, c.id)
}

// arrived shows a message of the client's that is not given to a process now, once.
func (s *showing) arrived(c *call, note string) {
	if !s.on() || c.shown || c.sends > 0 || c.isRequest() && c.own() {
		return
	}
	c.shown = true
	m := s.ofCall(c, tap.Client, tap.Outlive)
	if m.Note = note; c.isRequest() {
		m.At = c.came
	}
	s.put(&m, c.id)
}

// ending is an answer to a call, or its cancellation.
func (s *showing) ending(c *call, kind tap.Kind, line []byte, from tap.Party, end conclusion) tap.Message {
	m := s.ofCall(c, from, tap.Client)
	m.Kind, m.Size, m.Body, m.Generation = kind, len(line), line, c.gen
	if c.own() {
		m.To = tap.Outlive
		return m
	}
	m.Ends = true
	m.Call = tap.Call{
		Started: c.came, Took: s.core.now.Sub(c.came), Held: c.waited, Sends: c.sends, Outcome: conclusionNames[end], Reason: c.reason,
		Version: s.core.session.Version,
	}
	m.Call.ServerSpan, m.Call.ParentSpan = c.spans.Server, c.spans.Parent
	if meta := c.meta.Of(c.line); meta != nil {
		m.Call.Traceparent, m.Call.Tracestate = jsonrpc.Find(meta, "traceparent").Of(meta), jsonrpc.Find(meta, "tracestate").Of(meta)
		if raw := jsonrpc.Find(meta, mcp.MetaProtocolVersion).Of(meta); string(raw) == `"`+mcp.ModernVersion+`"` {
			m.Call.Version = mcp.ModernVersion
		} else if raw != nil {
			m.Call.Version, _ = jsonrpc.Unquote(raw)
		}
	}
	return m
}

// delivered shows the server's answer to a call: raw as the server wrote it, line, from which core.env was scanned, as the client gets it.
func (s *showing) delivered(c *call, raw, line []byte, end conclusion) {
	if !s.on() {
		return
	}
	m := s.ending(c, tap.Result, raw, tap.Server, end)
	if fault := s.core.env.Error.Of(line); s.core.env.Kind == jsonrpc.ErrorResponse {
		m.Kind, m.Call.Code = tap.Error, jsonrpc.Find(fault, "code").Of(fault)
	}
	if len(raw) != len(line) {
		m.Note = tap.NoteChanged
	}
	s.put(&m, c.id)
}

// answered shows an answer of outlive's own to a call.
func (s *showing) answered(c *call, line []byte) {
	if !s.on() {
		return
	}
	s.arrived(c, "")
	m := s.ending(c, tap.Result, line, tap.Outlive, c.done)
	if fault := jsonrpc.Find(line, "error").Of(line); fault != nil {
		m.Kind, m.Call.Code = tap.Error, jsonrpc.Find(fault, "code").Of(fault)
	}
	s.put(&m, c.id)
}

// cancelled shows the client's cancellation of a call, which gets no answer.
func (s *showing) cancelled(c *call, line []byte) {
	if !s.on() || s.env.Scan(line) != nil {
		return
	}
	m := s.ending(c, tap.Notification, line, tap.Client, doneCancelled)
	m.Method, m.Target = s.env.Method.Of(line), nil
	if m.To = tap.Server; c.state != sent {
		m.To = tap.Outlive
	}
	s.put(&m, c.id)
}

// passed shows a message that is not a call's, on its way from one to another.
func (s *showing) passed(line []byte, from, to tap.Party, gen int, note string) {
	if !s.on() || s.env.Scan(line) != nil {
		return
	}
	m := s.message(&s.env, line, from, to, gen)
	m.Note = note
	about := s.env.ProgressToken.Of(line)
	if about == nil {
		about = s.env.RequestID.Of(line)
	}
	s.put(&m, about)
}

// blocked shows a line of the client that is not passed on.
func (s *showing) blocked(line []byte) {
	if !s.on() {
		return
	}
	m := tap.Message{
		At: s.core.now, Server: s.core.opts.Name, Connection: s.connection, From: tap.Client, To: tap.Outlive, Kind: tap.Invalid,
		Size: len(line), Generation: s.core.process.gen, Note: tap.NoteBlocked, Body: line,
	}
	s.put(&m, nil)
}

// asked notes what outlive asks a process by itself, and shows it.
func (s *showing) asked(p *process, q *question, line []byte) {
	if !s.on() || s.env.Scan(line) != nil {
		return
	}
	q.method = bytes.Clone(s.env.Method.Of(line))
	m := s.message(&s.env, line, tap.Outlive, tap.Server, p.gen)
	m.Client = s.clientName(nil)
	s.core.opts.Tap.Put(&m)
}

// replied shows the answer with that raw id if it is to a question of outlive's own; core.env was scanned from it.
func (s *showing) replied(p *process, id, line []byte) {
	q := s.core.questions.open[string(id)]
	if !s.on() || q == nil || q.of != p {
		return
	}
	m := s.message(&s.core.env, line, tap.Server, tap.Outlive, p.gen)
	m.Method, m.Client = q.method, s.clientName(nil)
	s.core.opts.Tap.Put(&m)
}
