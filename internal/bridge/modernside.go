package bridge

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// modernSide is a modern client before a server of the legacy era. Its state is exported for [Bridge.Save].
type modernSide struct {
	*core  `json:"-"`
	sealer sealer

	Phase   phase
	Hello   string    // raw id of the initialize in flight
	Can     abilities // the server was told of
	Result  []byte    // raw InitializeResult
	Version string    // settled on with the server
	Meta    []byte    // raw, of the client's first request
	Level   int       // that the server was told, -1 for none

	Leveling leveling

	Held    [][]byte // requests that came before the handshake was over
	Queue   []turn   // calls whose turn has not come
	Calls   map[string]*task
	Asks    []*question // that belong to no call yet
	Asker   bool        // the server has asked something during a call: calls take turns
	Number  uint64      // of the call that was parked last
	Listens []*listen
	Asked   map[string]asked // the bridge's own requests, by raw id

	Shared bool            // many clients' requests come this way, see crowd.go
	Known  map[string]bool // what has asked something, by its target
	Ghosts []ghost         // withdrawn calls that the server may be working on
	Ruling time.Time       // when it is looked whose the questions in Asks are; zero: whenever something has happened
}

// task is one request of the client on its way.
type task struct {
	ID       []byte     // raw, the client's; nil while the client has nothing in flight for it
	Wire     string     // raw, the server's
	Name     string     // of the method
	Method   mcp.Method `json:"-"` // its number is this program's; the name says it
	Open     bool       // it may be answered with questions
	Private  bool       // id and progress token at the server are the bridge's
	Can      abilities  // that the request declares
	Params   []byte     // raw, as the server gets them
	Meta     []byte     // raw, of the request that the client waits for
	Token    []byte     // raw progress token of the client, nil for none
	Level    int        // log level asked for, -1 for none
	Number   uint64     // in handles, 0 before the first
	Round    int
	Asks     []*question // that the client has been shown
	Next     []*question // that it will be shown in the next round
	Behind   []byte      // the last progress that the server told of while nobody waited for it
	Finished []byte      // the server's answer, while nobody waits for it
	Afresh   bool        // the server has ended it: the next round is a new request to it
	Expires  time.Time   // while nobody waits for it
	Party    party       // whose it is, where that matters
	Since    time.Time   // when it went to the server
	Target   string      // what it calls
	Fresh    time.Time   // when it began, or went on after an answer
}

// parked reports whether the call waits at the server, and no request of the client for it.
func (t *task) parked() bool { return t.ID == nil }

func newModernSide(c *core, seal sealer) *modernSide {
	return &modernSide{core: c, sealer: seal, Level: -1, Calls: map[string]*task{}, Asked: map[string]asked{}}
}

func (s *modernSide) fromClient(line []byte) {
	err := s.env.Scan(line)
	switch {
	case err == nil && s.env.Kind == jsonrpc.Batch:
		for at := range jsonrpc.Elements(line) {
			if message := at.Of(line); s.env.Scan(message) == nil && s.env.Kind == jsonrpc.Request {
				s.refuse(s.env.ID.Of(message), jsonrpc.InvalidRequest, "invalid request: this protocol version has no batches")
			}
		}
	case err != nil || !s.env.Version2 || s.env.BadUTF8:
		s.toServer(line)
	case s.env.Kind == jsonrpc.Request:
		s.request(line)
	case s.env.Kind == jsonrpc.Notification:
		s.notification(line)
	}
}

// request takes a request of the client; s.env was scanned from it.
func (s *modernSide) request(line []byte) {
	id, meta := s.env.ID.Of(line), s.env.Meta.Of(line)
	m := mcp.Lookup(s.env.Method.Of(line))
	version := member(meta, mcp.MetaProtocolVersion)
	capabilities := member(meta, mcp.MetaClientCapabilities)
	switch {
	case s.inFlight(id):
		s.refuse(id, jsonrpc.InvalidRequest, "invalid request: a request with this id is still in flight")
	case !jsonrpc.IsString(version):
		s.refuse(id, jsonrpc.InvalidParams, "invalid params: _meta lacks "+mcp.MetaProtocolVersion)
	case !jsonrpc.EqualString(version, mcp.ModernVersion):
		s.toClient(wrongVersion(id, version))
	case !jsonrpc.IsObject(capabilities):
		s.refuse(id, jsonrpc.InvalidParams, "invalid params: _meta lacks "+mcp.MetaClientCapabilities)
	case gone(m):
		s.toClient(notFound(id))
	case !s.greeted(abilitiesOf(capabilities), meta):
		s.hold(id, line)
	default:
		s.use(m, id, line, meta, abilitiesOf(capabilities))
	}
}

// gone reports whether a method is one that the modern era has no more, or that the bridge does not have.
func gone(m mcp.Method) bool {
	switch m {
	case mcp.Initialize, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe,
		mcp.TasksGet, mcp.TasksList, mcp.TasksResult, mcp.TasksUpdate, mcp.TasksCancel:
		return true
	}
	return false
}

// use takes a request that the server, which has been greeted, can be asked.
func (s *modernSide) use(m mcp.Method, id, line, meta []byte, can abilities) {
	switch {
	case m == mcp.Discover:
		s.toClient(jsonrpc.AppendResult(nil, id, discoverResult(s.Result)))
	case m == mcp.Listen:
		s.listen(id, line)
	case mayAsk(m) && (can != 0 || s.env.RequestState.Present()):
		s.takeTurn(id, line)
	default:
		s.forward(m, id, line, meta, false, can)
	}
}

// inFlight reports whether a request with this raw id is on its way already.
func (s *modernSide) inFlight(id []byte) bool {
	return s.find(id) != nil || s.listenOf(id) != nil ||
		slices.ContainsFunc(s.Queue, func(t turn) bool { return jsonrpc.SameID(t.ID, id) }) ||
		slices.ContainsFunc(s.Held, func(line []byte) bool { return jsonrpc.SameID(member(line, "id"), id) })
}

// find returns the call that the client waits for under a raw id.
func (s *modernSide) find(id []byte) *task {
	for _, t := range s.Calls {
		if t.ID != nil && jsonrpc.SameID(t.ID, id) {
			return t
		}
	}
	return nil
}

// onWire returns the call that the server knows under a raw id.
func (s *modernSide) onWire(id []byte) *task {
	if t := s.Calls[string(id)]; t != nil {
		return t
	}
	for wire, t := range s.Calls {
		if jsonrpc.SameID([]byte(wire), id) {
			return t
		}
	}
	return nil
}

// greeted begins the handshake if there was none, or if the client can do more than the server was told and nothing would
// be lost by a new one. It reports whether the server can be asked now.
func (s *modernSide) greeted(can abilities, meta []byte) bool {
	if s.Shared {
		can &= everyAbility
	}
	if s.Phase == ready && can&^s.Can != 0 && len(s.Calls) == 0 && len(s.Queue) == 0 && len(s.Asks) == 0 {
		s.Phase = virgin
	}
	if s.Meta == nil {
		s.Meta = jsonrpc.Delete(nil, meta, "progressToken")
	}
	if s.Phase == virgin {
		s.Phase = greeting
		s.Can |= can
		id := s.private()
		s.Hello = string(id)
		s.toServer(mcp.InitializeLine(id, initializeParams(meta, s.Can), ""))
	}
	return s.Phase == ready
}

// hold keeps a request until the handshake is over.
func (s *modernSide) hold(id, line []byte) {
	if len(s.Held) >= queueMost {
		s.refuse(id, jsonrpc.InternalError, "the server is still starting, and too many requests are waiting")
		return
	}
	s.Held = append(s.Held, bytes.Clone(line))
}

// welcomed takes the server's answer to the handshake.
func (s *modernSide) welcomed(line []byte) {
	held := s.Held
	s.Held, s.Hello = nil, ""
	result := s.env.Result.Of(line)
	if s.env.Kind != jsonrpc.Response || !jsonrpc.IsObject(result) {
		s.Phase = virgin
		text := "the server refused the handshake: " + messageOf(s.env.Error.Of(line))
		for _, one := range held {
			s.refuse(member(one, "id"), jsonrpc.InternalError, text)
		}
		return
	}
	s.Phase, s.Result, s.Level, s.Leveling = ready, bytes.Clone(result), -1, leveling{}
	s.Version, _ = jsonrpc.Unquote(member(result, "protocolVersion"))
	s.toServer(mcp.InitializedLine())
	s.resubscribe()
	for _, one := range held {
		if s.env.Scan(one) == nil {
			s.request(one)
		}
	}
}

// forward sends a request on as a legacy client would say it. An open one goes under an id of the bridge's: the client
// gets an answer to it, and may use its id again, while the server still works.
func (s *modernSide) forward(m mcp.Method, id, line, meta []byte, open bool, can abilities) {
	name, _ := jsonrpc.Unquote(s.env.Method.Of(line))
	params := withoutReserved(without(s.env.Params.Of(line), "inputResponses", "requestState"), mcp.MetaPrincipal)
	t := &task{ID: bytes.Clone(id), Wire: string(id), Name: name, Method: m, Open: open, Can: can, Params: params, Meta: bytes.Clone(meta),
		Level: severity(member(meta, mcp.MetaLogLevel)), Token: bytes.Clone(member(meta, "progressToken")),
		Party: s.partyOf(meta), Since: s.now, Target: s.target(line), Fresh: s.now}
	if t.Private = open || looksPrivate(id) || looksPrivate(t.Token); t.Private {
		t.Wire = string(s.private())
		t.mark()
	}
	s.Calls[t.Wire] = t
	s.verbosity()
	s.sendOf(t, withParams(line, &s.env, []byte(t.Wire), t.Params), true)
	s.assign()
}

// mark puts the progress token under which the server speaks of the call into its params.
func (t *task) mark() {
	if t.Token != nil {
		t.Params = set(t.Params, []byte(t.Wire), "_meta", "progressToken")
	}
}

// verbosity tells the server the most verbose level that a request in flight asks for.
func (s *modernSide) verbosity() {
	if member(s.Result, "capabilities", "logging") == nil {
		return
	}
	var inUse []int
	for _, t := range s.Calls {
		if !t.parked() {
			inUse = append(inUse, t.Level)
		}
	}
	if level := mostVerbose(inUse); level >= 0 && level != s.Level {
		s.Level = level
		s.Leveling.ID = s.ask(mcp.SetLevel, append(jsonrpc.AppendQuoted([]byte(`{"level":`), levels[level]), '}'), asked{})
	}
}

// asked is what the bridge itself has asked the server.
type asked struct {
	Listen string // raw id of the listen for which a resource was subscribed to; "" for none
	URI    string
}

// ask sends the server a request of the bridge's own, and returns its raw id.
func (s *modernSide) ask(m mcp.Method, params []byte, about asked) string {
	id := s.private()
	s.Asked[string(id)] = about
	s.toServer(jsonrpc.AppendRequest(nil, id, m.String(), params))
	return string(id)
}

// notification takes a notification of the client.
func (s *modernSide) notification(line []byte) {
	switch mcp.Lookup(s.env.Method.Of(line)) {
	case mcp.NoteCancelled:
		s.cancelled(line)
	case mcp.NoteInitialized, mcp.NoteProgress:
		// of the legacy era
	default:
		if name, _ := jsonrpc.Unquote(s.env.Method.Of(line)); name == "notifications/roots/list_changed" || s.Phase != ready {
			return
		}
		s.toServer(s.plain(line))
	}
}

// cancelled takes the client's word that it does not wait for an answer any more.
func (s *modernSide) cancelled(line []byte) {
	id := s.env.RequestID.Of(line)
	same := func(other []byte) bool { return jsonrpc.SameID(other, id) }
	s.Held = slices.DeleteFunc(s.Held, func(held []byte) bool { return same(member(held, "id")) })
	s.Queue = slices.DeleteFunc(s.Queue, func(t turn) bool { return same(t.ID) })
	if l := s.listenOf(id); l != nil {
		s.endListen(l)
		return
	}
	if t := s.find(id); t != nil {
		if !s.unsent(t) {
			s.toServer(jsonrpc.Replace(nil, s.plain(line), s.env.RequestID, []byte(t.Wire)))
		}
		s.drop(t)
		s.proceed()
	}
}

// drop forgets a call; what the server has asked for it is refused.
func (s *modernSide) drop(t *task) {
	delete(s.Calls, t.Wire)
	begun := !s.unsent(t)
	s.unsend(t)
	if s.Shared && begun {
		s.mourn(t)
		return
	}
	for _, q := range append(t.Asks, t.Next...) {
		s.decline(q, "the client does not wait for this any more")
	}
	t.Asks, t.Next = nil, nil
}

func (s *modernSide) waiting() bool { return len(s.Held)+len(s.Queue)+len(s.Leveling.Lines) > 0 }

// close answers all that the client waits for.
func (s *modernSide) close(why string) {
	for _, line := range s.Held {
		s.refuse(member(line, "id"), jsonrpc.InvalidRequest, why)
	}
	for _, t := range s.Queue {
		s.refuse(t.ID, jsonrpc.InvalidRequest, why)
	}
	for _, t := range s.inOrder() {
		if !t.parked() {
			s.refuse(t.ID, jsonrpc.InvalidRequest, why)
		}
	}
	for _, l := range s.Listens {
		s.refuse(l.ID, jsonrpc.InvalidRequest, why)
	}
}

func (s *modernSide) refuse(id []byte, code int, text string) {
	s.toClient(jsonrpc.AppendError(nil, id, code, text, nil))
}
