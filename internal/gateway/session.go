package gateway

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// Session is one client.
type Session struct {
	gw      *Gateway
	era     mcp.Era
	own     *scope // of a client of the legacy era, from its handshake on
	general Stream // for what belongs to no request
	behind  func() bool

	initParams []byte // raw
	version    string // the protocol version both sides settled on
	name       string // what the client calls itself
	calls      map[string]*exchange
	seen       seen
	level      []byte // raw params of the last logging/setLevel
	severity   int    // of that
	subs       []subscription
	ended      bool
	leaveBy    time.Time
	whenIdle   func() // the client has closed its end; what it asked is answered first
}

// subscription is a resource whose changes the client wants to hear of.
type subscription struct {
	link *Link
	uri  string // raw
}

// nowhere takes what belongs to no request while nobody listens.
type nowhere struct{}

func (nowhere) Send([]byte) {}

// Open begins a session. general takes what belongs to no request, nil for a client that has no place for it; behind says
// whether so much waits for the client that its own servers are not to be read, nil: never.
func (g *Gateway) Open(general Stream, behind func() bool) *Session {
	s := &Session{gw: g, behind: behind, calls: map[string]*exchange{}}
	s.Attach(general)
	g.sessions[s] = struct{}{}
	return s
}

// Attach says where what belongs to no request goes from now on.
func (s *Session) Attach(general Stream) {
	if s.general = general; general == nil {
		s.general = nowhere{}
	}
}

// Close ends the session: its own servers finish what they were asked, and end.
func (s *Session) Close(now time.Time) {
	s.gw.now = now
	s.end()
	s.gw.flush()
}

// CloseWhenIdle ends the session once the client has the answers to what it asked, after patience at the latest, and then
// calls done.
func (s *Session) CloseWhenIdle(now time.Time, patience time.Duration, done func()) {
	s.gw.now = now
	s.whenIdle = func() {
		s.whenIdle = nil
		s.end()
		done()
	}
	s.leaveBy = now.Add(patience)
	s.gw.at(s.leaveBy)
	s.leaveIfIdle()
	s.gw.flush()
}

// leaveIfIdle ends a session whose client has closed its end.
func (s *Session) leaveIfIdle() {
	if s.whenIdle != nil && (len(s.calls) == 0 || !s.gw.now.Before(s.leaveBy)) {
		s.whenIdle()
	} else if s.whenIdle != nil {
		s.gw.at(s.leaveBy)
	}
}

func (s *Session) end() {
	if s.ended {
		return
	}
	s.ended = true
	delete(s.gw.sessions, s)
	s.dropAsks()
	for _, e := range s.calls {
		s.cancel(e, "the client has left")
	}
	s.gw.modern.leave(s)
	s.gw.common.forget(s)
	if s.own != nil {
		s.own.closeAll()
	}
	for _, sub := range s.subs {
		if sub.link.scope.owner == nil {
			s.gw.unsubscribe(sub)
		}
	}
}

// Gone tells that whoever waited on the stream has left without the answer, for good: nobody needs it any more.
func (s *Session) Gone(now time.Time, reply Stream) {
	s.gw.now = now
	for _, e := range s.calls {
		if e.stream == reply {
			s.cancel(e, "the client has left")
		}
	}
	s.gw.flush()
}

// cancel ends a request without an answer, and tells whoever works on it.
func (s *Session) cancel(e *exchange, reason string) {
	e.over()
	if e.method == mcp.Listen {
		s.gw.modern.stopListen(e, reason)
		return
	}
	l := e.link
	if l == nil {
		return // it waits for lists; it is not found there any more
	}
	if _, sent := l.calls[e.upID]; sent {
		delete(l.calls, e.upID)
		s.gw.post(l, mcp.CancelledLine(rawID(e.upID), reason))
		l.endIfIdle()
		return
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(one *exchange) bool { return one == e })
}

// scope is what the session's requests are answered from.
func (s *Session) scope() *scope {
	if s.own != nil {
		return s.own
	}
	return s.gw.modern
}

// Idle reports whether nothing of the session is in flight.
func (s *Session) Idle() bool { return len(s.calls) == 0 }

// initialize takes the handshake of the legacy era. A second one on the same connection begins anew.
func (s *Session) initialize(e *exchange, line []byte) {
	env := &s.gw.client
	params := env.Params.Of(line)
	if s.own != nil {
		s.restart(e)
	}
	s.era = mcp.Legacy
	s.initParams = bytes.Clone(params)
	info := jsonrpc.Find(params, "clientInfo").Of(params)
	s.name, _ = jsonrpc.Unquote(jsonrpc.Find(info, "name").Of(info))
	asked, _ := jsonrpc.Unquote(jsonrpc.Find(params, "protocolVersion").Of(params))
	if s.version = asked; !mcp.IsLegacy(asked) {
		s.version = mcp.LegacyVersions[len(mcp.LegacyVersions)-1]
		s.initParams, _ = jsonrpc.Set(nil, s.initParams, jsonrpc.AppendQuoted(nil, s.version), "protocolVersion")
	}
	s.own = newScope(s.gw, mcp.Legacy, s)
	s.own.openAll() // a lazy server is not started by that if anything is remembered of it
	e.answer(s.initializeResult())
}

// restart forgets an earlier handshake.
func (s *Session) restart(but *exchange) {
	s.dropAsks()
	for _, e := range s.calls {
		if e != but {
			s.cancel(e, "new session")
			e.refuse(jsonrpc.InvalidRequest, "the client began a new session")
		}
	}
	s.own.closeAll()
	s.seen, s.level, s.severity, s.subs = seen{}, nil, 0, nil
}

// capabilities are what the gateway has, whichever servers are there: they come and go.
const capabilities = `"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},` +
	`"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{}}`

func (s *Session) initializeResult() []byte {
	out := jsonrpc.AppendQuoted([]byte(`{"protocolVersion":`), s.version)
	out = append(out, `,`+capabilities+`,"serverInfo":`...)
	out = append(out, s.gw.info()...)
	if text := s.own.instructions(); text != "" {
		out = jsonrpc.AppendQuoted(append(out, `,"instructions":`...), text)
	}
	return append(out, '}')
}

// discover answers what the gateway is in the modern era. As long as a server is known that speaks only the legacy era, or
// nothing is known of one, the client is told to use that: it would miss a server otherwise.
func (s *Session) discover(e *exchange) {
	s.gw.modern.whenTried(s, string(e.id), func() {
		for _, server := range s.gw.servers {
			if server.modern != speaks {
				e.refuse(jsonrpc.MethodNotFound, "Method not found")
				return
			}
		}
		out := []byte(`{"resultType":"complete","supportedVersions":["` + mcp.ModernVersion + `"],` + capabilities + `,"ttlMs":0,"cacheScope":"private","_meta":{"` + mcp.MetaServerInfo + `":`)
		out = append(append(out, s.gw.info()...), '}')
		if text := s.gw.modern.instructions(); text != "" {
			out = jsonrpc.AppendQuoted(append(out, `,"instructions":`...), text)
		}
		e.answer(append(out, '}'))
	})
}

// setLevel takes logging/setLevel.
func (s *Session) setLevel(e *exchange, line []byte) {
	env := &s.gw.client
	level, _ := jsonrpc.Unquote(env.Level.Of(line))
	if !slices.Contains(severities, level) {
		e.refuse(jsonrpc.InvalidParams, "unknown log level")
		return
	}
	s.level, s.severity = bytes.Clone(env.Params.Of(line)), severity(level)
	for _, links := range s.own.links {
		for _, l := range links {
			if l.phase == ready {
				l.setLevel(s.level)
			}
		}
	}
	s.gw.commonLevel()
	e.answer([]byte("{}"))
}

// commonLevel asks shared servers for the most that any client wants.
func (g *Gateway) commonLevel() {
	var most *Session
	for s := range g.sessions {
		if s.level != nil && (most == nil || s.severity < most.severity) {
			most = s
		}
	}
	for _, links := range g.common.links {
		for _, l := range links {
			if most != nil && l.phase == ready {
				l.setLevel(most.level)
			}
		}
	}
}

// subscribed notes a subscription that a server has granted.
func (s *Session) subscribed(l *Link, uri []byte) {
	if !s.subscribes(uri) {
		s.subs = append(s.subs, subscription{l, string(uri)})
	}
}

func (s *Session) subscribes(uri []byte) bool {
	return slices.ContainsFunc(s.subs, func(sub subscription) bool { return sub.uri == string(uri) })
}

func (s *Session) unsubscribed(uri []byte) {
	s.subs = slices.DeleteFunc(s.subs, func(sub subscription) bool { return sub.uri == string(uri) })
}

// unsubscribe ends a subscription at a shared server if nobody needs it any more.
func (g *Gateway) unsubscribe(sub subscription) {
	for s := range g.sessions {
		if s.subscribes([]byte(sub.uri)) {
			return
		}
	}
	sub.link.ask(mcp.Unsubscribe, func(id []byte) []byte {
		return jsonrpc.AppendRequest(nil, id, mcp.Unsubscribe.String(), []byte(`{"uri":`+sub.uri+`}`))
	}, func(_, _ []byte) {})
}
