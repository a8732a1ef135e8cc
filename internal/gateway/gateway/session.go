package gateway

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Session is one client.
type Session struct {
	gw      *Gateway
	era     mcp.Era
	own     *scope // of a client of the legacy era, from its handshake on
	general Stream // for what belongs to no request

	principal string // whom the transport has authenticated; "" for nobody
	behind    func() bool

	initParams []byte               // raw
	key        string               // of them: see capabilityKey
	version    string               // the protocol version both sides settled on
	name       string               // what the client calls itself
	calls      map[string]*exchange // by raw id
	held       int                  // bytes of their lines
	asks       map[string]*ask      // what servers want to know of it, by the raw id it was told
	seen       seen
	level      []byte // raw params of the last logging/setLevel
	severity   int    // of that
	subs       []*subscription
	ended      bool
	leaveBy    time.Time
	whenIdle   func() // the client has closed its end; what it asked is answered first

	prev, next *Session // in the sessionList
}

// nowhere takes what belongs to no request while nobody listens.
type nowhere struct{}

func (nowhere) Send([]byte) {}

// Open begins a session. general takes what belongs to no request, nil for a client that has no place for it; behind says
// whether so much waits for the client that its own servers are not to be read, nil: never.
func (g *Gateway) Open(general Stream, behind func() bool) *Session {
	s := &Session{gw: g, behind: behind, calls: map[string]*exchange{}}
	s.Attach(general)
	g.sessions.add(s)
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
	if s.whenIdle != nil && (s.idle() || !s.gw.now.Before(s.leaveBy)) {
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
	s.gw.sessions.remove(s)
	s.dropAsks()
	for _, e := range inOrder(s.calls) {
		s.cancel(e, "the client has left")
	}
	s.leaveShared()
	if s.own != nil {
		s.own.closeAll()
	}
}

// leaveShared takes back what the session wanted of servers that others use, too.
func (s *Session) leaveShared() {
	subs, level := s.subs, s.level
	s.subs, s.level, s.severity = nil, nil, 0
	for _, sub := range subs {
		s.gw.unsubscribe(sub)
	}
	if level != nil {
		s.gw.commonLevel()
	}
}

// Gone tells that whoever waited on the stream has left without the answer, for good: nobody needs it any more.
func (s *Session) Gone(now time.Time, reply Stream) {
	s.gw.now = now
	for _, e := range inOrder(s.calls) {
		if e.stream == reply {
			s.cancel(e, "the client has left")
		}
	}
	s.gw.flush()
}

// What one session may have in flight.
const (
	callsMost = 1024
	heldMost  = 64 << 20 // bytes; a single request may have more
)

// hasRoom reports whether the session may have another request of so many bytes in flight. Requests whose client has left
// without the answer give up their place, the oldest first: it may come back for the answer only as long as nobody needs the place.
func (s *Session) hasRoom(bytes int) bool {
	fits := func() bool {
		return len(s.calls) < callsMost && (s.held+bytes <= heldMost || len(s.calls) == 0)
	}
	if fits() {
		return true
	}
	for _, e := range inOrder(s.calls) {
		if left, ok := e.stream.(interface{ Abandoned() bool }); ok && left.Abandoned() {
			s.cancel(e, "the client has left")
			if fits() {
				return true
			}
		}
	}
	return false
}

// Release tells that the client has been away for a while: the session's own processes end, unless it waits for an answer. What
// the session has set stays, and its next request has processes started that are told of it.
func (s *Session) Release(now time.Time) {
	s.gw.now = now
	if s.own != nil && s.idle() {
		s.own.closeAll()
		s.own.opened = false
	}
	s.gw.flush()
}

// cancel ends a request without an answer, and tells whoever works on it.
func (s *Session) cancel(e *exchange, reason string) {
	e.over()
	switch e.method {
	case mcp.Listen:
		s.gw.modern.stopListen(e, reason)
		return
	case mcp.Subscribe:
		if sub := s.unsubscribed(e.uri); sub != nil {
			defer s.gw.unsubscribe(sub) // whether the server has done it or not
		}
	}
	e.withdraw(reason)
}

// scope is what the session's requests are answered from.
func (s *Session) scope() *scope {
	if s.own != nil {
		return s.own
	}
	return s.gw.modern
}

// idle reports whether the client has all its answers. To listening there is none.
func (s *Session) idle() bool {
	for _, e := range s.calls {
		if e.method != mcp.Listen {
			return false
		}
	}
	return true
}

// initialize takes the handshake of the legacy era. A second one on the same connection begins anew.
func (s *Session) initialize(e *exchange, line []byte) {
	env := &s.gw.client
	params := env.Params.Of(line)
	if !jsonrpc.IsObject(params) {
		e.refuse(jsonrpc.InvalidParams, "initialize needs params")
		return
	}
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
	s.key = capabilityKey(s.initParams)
	s.own = newScope(s.gw, mcp.Legacy, s)
	if s.gw.opts.Single { // whoever has started the gateway is going to use it; others may only have knocked
		s.own.openAll()
	}
	e.answer(s.initializeResult())
}

// restart forgets an earlier handshake.
func (s *Session) restart(but *exchange) {
	s.dropAsks()
	for _, e := range inOrder(s.calls) {
		if e != but {
			s.cancel(e, "new session")
			e.refuse(jsonrpc.InvalidRequest, "the client began a new session")
		}
	}
	s.leaveShared()
	s.own.closeAll()
	s.seen = seen{}
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

// discover answers what the gateway is in the modern era, or sends the client to the legacy one.
func (s *Session) discover(e *exchange) {
	s.gw.modern.whenTried(e, func() {
		if !s.gw.isModern(e.id) {
			e.refuse(jsonrpc.MethodNotFound, "Method not found")
			return
		}
		out := []byte(`{"resultType":"complete","supportedVersions":["` + mcp.ModernVersion + `"],` + capabilities + `,"ttlMs":0,"cacheScope":"private","_meta":{"` + mcp.MetaServerInfo + `":`)
		out = append(append(out, s.gw.info()...), '}')
		if text := s.gw.modern.instructions(); text != "" {
			out = jsonrpc.AppendQuoted(append(out, `,"instructions":`...), text)
		}
		e.answer(append(out, '}'))
	})
}

// isModern decides whether a client that sends server/discover is to use the modern era. It is not if it would miss a
// server there: one that speaks the legacy era only, or of which nothing is known, and is not translated. A single client
// is not either if every server were translated, which can do less than the real thing, unless it goes nowhere else (id is
// the raw one of its request): each of its servers is its own in the legacy era, too.
func (g *Gateway) isModern(id string) bool {
	native := len(g.servers) == 0
	for _, s := range g.servers {
		switch {
		case s.modern == speaks && !s.bridged:
			native = true
		case !s.Bridge:
			return false
		}
	}
	return native || !g.opts.Single || bridge.MayBePinned([]byte(id))
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
	for l := range s.own.each {
		if l.phase == ready {
			l.level.set(s.level)
		}
	}
	s.gw.commonLevel()
	e.answer([]byte("{}"))
}

// commonLevel asks shared servers for the most that any client wants.
func (g *Gateway) commonLevel() {
	level := g.mostVerbose()
	for l := range g.common.each {
		if l.phase == ready {
			l.level.set(level)
		}
	}
}

// mostVerbose are the raw params of the logging/setLevel that asks for the most; nil: no client has asked.
func (g *Gateway) mostVerbose() []byte {
	var most *Session
	for s := range g.sessions.all {
		if s.level != nil && (most == nil || s.severity < most.severity) {
			most = s
		}
	}
	if most == nil {
		return nil
	}
	return most.level
}
