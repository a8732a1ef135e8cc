package gateway

import (
	"bytes"
	"cmp"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Session is one client.
type Session struct {
	gw      *Gateway
	own     *scope // of a client of the legacy era, from its handshake on
	pool    *scope // of such a client: what it shares with others
	general Stream // for what belongs to no request

	principal string // authenticated by the transport; "": none
	view      string // all that it sees; "": everything
	behind    func() bool

	initParams []byte               // raw
	key        string               // of them: see capabilityKey
	version    string               // the protocol version both sides settled on
	name       string               // what the client calls itself
	calls      map[string]*exchange // by raw id
	held       int                  // bytes of their lines
	roots      rooted
	seen       seen
	before     [mcp.Lists]digests // lists that the client has read from another gateway, until they are compared; nil: none
	keep       func([]byte)       // takes the session's record; nil: it ends with the gateway
	level      []byte             // raw params of the last logging/setLevel
	severity   int                // of that
	subs       []*subscription
	ended      bool
	leaveBy    time.Time
	whenIdle   func() // the client has closed its end; its requests are answered first

	prev, next *Session // in the sessionList
}

// discard drops general messages while no client listens.
type discard struct{}

func (discard) Send([]byte) {}

// Open begins a session. general takes messages that belong to no request, nil if the client has no place for them;
// behind says whether the client reads so slowly that its servers must not be read, nil: never.
func (g *Gateway) Open(general Stream, behind func() bool) *Session {
	s := &Session{gw: g, behind: behind, calls: map[string]*exchange{}}
	s.Attach(general)
	g.sessions.add(s)
	return s
}

// Attach sets the stream for messages that belong to no request.
func (s *Session) Attach(general Stream) {
	if s.general = general; general == nil {
		s.general = discard{}
	}
}

// Close ends the session: its own servers finish their requests and end.
func (s *Session) Close(now time.Time) {
	s.gw.now = now
	s.end()
	s.gw.flush()
}

// CloseWhenIdle ends the session when the client has all its answers, and then calls done. What has none after patience gets one of
// outlive's own. The client answers nothing any more: what servers ask it is answered with errors.
func (s *Session) CloseWhenIdle(now time.Time, patience time.Duration, done func()) {
	s.gw.now = now
	s.whenIdle = func() {
		s.whenIdle = nil
		s.end()
		done()
	}
	s.leaveBy = now.Add(patience)
	s.gw.at(s.leaveBy)
	s.dropAsks()
	if s.roots.shown != "" {
		s.place(nil)
	}
	s.leaveIfIdle()
	s.gw.flush()
}

// leaveIfIdle ends a session whose client has closed its end.
func (s *Session) leaveIfIdle() {
	switch {
	case s.whenIdle == nil:
		return
	case !s.gw.now.Before(s.leaveBy):
		for _, e := range inOrder(s.calls) {
			e.giveUp()
		}
	case !s.idle():
		s.gw.at(s.leaveBy)
		return
	}
	s.whenIdle()
}

func (s *Session) end() {
	if s.ended {
		return
	}
	s.ended = true
	s.gw.sessions.remove(s)
	s.dropAsks()
	if s.roots.key == "" {
		s.roots = s.gw.rootsSaid(nil) // a call of its own may ask for them yet
	}
	for _, e := range inOrder(s.calls) {
		s.cancel(e, hasLeft)
	}
	s.leaveShared()
	if s.own != nil {
		s.own.closeAll()
	}
}

// leaveShared removes the session, with its subscriptions and log level, from shared servers.
func (s *Session) leaveShared() {
	subs := s.subs
	s.subs, s.level, s.severity = nil, nil, 0
	for _, sub := range subs {
		s.gw.unsubscribe(sub)
	}
	sc := s.pool
	if s.pool = nil; sc == nil {
		return
	}
	sc.levelAll()
	for range sc.members {
		return
	}
	if sc.gw.opts.Plain { // a scope without clients ends after Options.PoolIdle
		sc.pool.since = sc.gw.now
		sc.gw.at(sc.gw.now.Add(sc.gw.opts.PoolIdle))
	}
}

// What one session may have in flight.
const (
	callsMost = 1024
	heldMost  = 64 << 20 // bytes; a single request may have more
)

// hasRoom reports whether the session may have another request of so many bytes in flight. Abandoned requests are
// dropped for it, oldest first: a client may come back for their answers only as long as there is room.
func (s *Session) hasRoom(bytes int) bool {
	fits := func() bool {
		return len(s.calls) < callsMost && (s.held+bytes <= heldMost || len(s.calls) == 0)
	}
	if fits() {
		return true
	}
	for _, e := range inOrder(s.calls) {
		if left, ok := e.stream.(interface{ Abandoned() bool }); ok && left.Abandoned() {
			s.dismiss(e, hasLeft)
			if fits() {
				return true
			}
		}
	}
	return false
}

// Release says that the client has been away for a while: the session's own processes end, unless it waits for an
// answer. Its settings stay, and its next request starts processes with them.
func (s *Session) Release(now time.Time) {
	s.gw.now = now
	if s.own != nil && s.idle() {
		s.own.closeAll()
		s.own.showing(s.view).opened = false
	}
	s.gw.flush()
}

// dismiss cancels a request for whose answer nobody waits, and tells its stream, if that counts answers.
func (s *Session) dismiss(e *exchange, reason string) {
	s.cancel(e, reason)
	if counts, ok := e.stream.(interface{ Withdraw(id string) }); ok {
		counts.Withdraw(e.id)
	}
}

// cancel ends a request without an answer, and cancels it at the server.
func (s *Session) cancel(e *exchange, reason string) {
	e.over()
	switch e.method {
	case mcp.Listen:
		if !s.gw.opts.Plain {
			s.gw.modern.stopListen(e, reason)
			return
		}
	case mcp.Subscribe:
		if sub := s.unsubscribed(e.uri); sub != nil {
			defer s.gw.unsubscribe(sub) // in any case
		}
	}
	e.withdraw(reason)
}

// scope is what the session's requests are answered from.
func (s *Session) scope() *scope { return cmp.Or(s.own, s.gw.modern) }

// idle reports whether the client has all its answers. Listening has none.
func (s *Session) idle() bool {
	for _, e := range s.calls {
		if e.method != mcp.Listen {
			return false
		}
	}
	return true
}

// initialize takes the legacy handshake. A second one on the same connection starts anew.
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
	params = bytes.Clone(params)
	version, _ := jsonrpc.Unquote(jsonrpc.Find(params, "protocolVersion").Of(params))
	if !mcp.IsLegacy(version) {
		version = mcp.NewestLegacy
		params, _ = jsonrpc.Set(nil, params, jsonrpc.AppendQuoted(nil, version), "protocolVersion")
	}
	introduce(s, params, version)
	remember(s)
	if s.gw.opts.Plain {
		s.pool.greetPlainly(e)
		return
	}
	if s.gw.opts.Single { // whoever has started the gateway is going to use it; others may only have knocked
		s.own.openAll(s.view)
	}
	e.answer(s.initializeResult())
}

// introduce takes what a client of the legacy era has said of itself, its raw params of initialize, and the version that was
// settled on.
func introduce(s *Session, params []byte, version string) {
	s.initParams, s.version = params, version
	info := jsonrpc.Find(params, "clientInfo").Of(params)
	s.name, _ = jsonrpc.Unquote(jsonrpc.Find(info, "name").Of(info))
	s.key = capabilityKey(params)
	s.own = newScope(s.gw, mcp.Legacy, s)
	s.pool = s.gw.poolFor(s)
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
	s.seen, s.roots, s.before = seen{}, rooted{}, [mcp.Lists]digests{}
}

// capabilities are the gateway's, independent of its servers, which come and go.
const capabilities = `"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true},` +
	`"resources":{"subscribe":true,"listChanged":true},"logging":{},"completions":{}}`

func (s *Session) initializeResult() []byte {
	out := jsonrpc.AppendQuoted([]byte(`{"protocolVersion":`), s.version)
	out = append(out, `,`+capabilities+`,"serverInfo":`...)
	out = append(out, s.gw.info()...)
	return append(append(out, s.instructions()...), '}')
}

// discover answers server/discover, or sends the client to the legacy era.
func (s *Session) discover(e *exchange) {
	s.gw.modern.whenTried(e, func() {
		if !s.isModern(e.id) {
			e.refuse(jsonrpc.MethodNotFound, "Method not found")
			return
		}
		if s.gw.opts.Plain {
			s.gw.modern.greetPlainly(e)
			return
		}
		out := []byte(`{"resultType":"complete","supportedVersions":` + mcp.ModernVersions + `,` + capabilities + `,"ttlMs":0,"cacheScope":"private","_meta":`)
		out = append(out, s.gw.madeHere("")...)
		e.answer(append(append(out, s.instructions()...), '}'))
	})
}

// isModern decides whether a client that sends server/discover gets the modern era. It does not if it would miss a
// server there: one that is legacy only, or untested, and is not translated. Neither does a single client if every
// server had to be translated, which loses functions, unless it cannot fall back (id is the raw one of its request); its
// servers are its own in the legacy era, too.
func (s *Session) isModern(id string) bool {
	g, servers := s.gw, s.servers()
	native := len(servers) == 0
	for _, s := range servers {
		switch {
		case s.modern == speaks && !s.bridged:
			native = true
		case !s.Bridge:
			return false
		}
	}
	return native || !g.opts.Single && !g.opts.Plain || bridge.MayBePinned([]byte(id))
}

// setLevel takes logging/setLevel.
func (s *Session) setLevel(e *exchange, line []byte) {
	env := &s.gw.client
	severity := mcp.Severity(env.Level.Of(line))
	if severity < 0 {
		e.refuse(jsonrpc.InvalidParams, "unknown log level")
		return
	}
	s.level, s.severity = bytes.Clone(env.Params.Of(line)), severity
	s.own.levelAll()
	s.pool.levelAll()
	remember(s)
	e.answer([]byte("{}"))
}

// levelAll asks the servers for the most that any of their clients wants.
func (sc *scope) levelAll() {
	for l := range sc.each {
		if l.phase == ready {
			l.setLevel()
		}
	}
}

// setLevel tells the server its log level, unless it has been told. Its keeper sees to it that what follows waits for the confirmation.
func (l *Link) setLevel() {
	params := l.scope.mostVerbose(l.server)
	if params == nil || bytes.Equal(params, l.level) || !l.capability("logging") {
		return
	}
	l.level = params
	l.ask(mcp.SetLevel, params, func(_, _ []byte) {})
}

// mostVerbose are the raw params of the logging/setLevel that asks a server for the most; nil: no client of it has asked.
func (sc *scope) mostVerbose(of *server) []byte {
	most := sc.owner
	for s := range sc.members {
		if s.level != nil && s.has(of) && (most == nil || s.severity < most.severity) {
			most = s
		}
	}
	if most == nil {
		return nil
	}
	return most.level
}
