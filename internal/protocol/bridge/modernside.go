package bridge

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// modernSide is a modern client in front of a legacy server. It owns the handshake, the requests that wait for their turn, and
// the answers of suspended calls; its parts own the rest.
type modernSide struct {
	*core
	key []byte // see [Options]

	Can     abilities // the server was told of
	Result  []byte    // raw InitializeResult
	Version string    // settled on with the server
	Meta    []byte    // raw, of the client's first request
	Queue   []turn    // calls whose turn has not come

	Leveling  leveling
	Listens   listens
	Questions questions
}

// newModernSide returns the side of one client, or of many if the options tell who has sent a request.
func newModernSide(c *core, opts Options) *modernSide {
	s := &modernSide{core: c, key: opts.Key, Leveling: leveling{core: c, Level: -1}, Listens: listens{core: c}}
	s.Questions = questions{core: c, side: s, Shared: opts.Principal != nil, Known: map[string]bool{}, principal: opts.Principal}
	if s.Questions.Shared {
		s.Can = everyAbility
	}
	return s
}

func (s *modernSide) fromClient(line []byte) {
	if s.hold(line) {
		return
	}
	switch s.env.Kind {
	case jsonrpc.Request:
		s.request(line)
	case jsonrpc.Notification:
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
	case !mcp.IsModern(version):
		s.toClient(wrongVersion(id, version))
	case !jsonrpc.IsObject(capabilities):
		s.refuse(id, jsonrpc.InvalidParams, "invalid params: _meta lacks "+mcp.MetaClientCapabilities)
	case gone(m):
		s.toClient(notFound(id))
	case !s.greeted(abilitiesOf(capabilities), meta):
		s.hold(line)
	default:
		s.use(m, id, line, meta, abilitiesOf(capabilities))
	}
}

// gone reports whether a method was removed from the modern era, or is not supported by the bridge.
func gone(m mcp.Method) bool {
	switch m {
	case mcp.Initialize, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe,
		mcp.TasksGet, mcp.TasksList, mcp.TasksResult, mcp.TasksUpdate, mcp.TasksCancel:
		return true
	}
	return false
}

// use handles a request after the handshake.
func (s *modernSide) use(m mcp.Method, id, line, meta []byte, can abilities) {
	switch {
	case m == mcp.Discover:
		s.toClient(jsonrpc.AppendResult(nil, id, discoverResult(s.Result)))
	case m == mcp.Listen:
		s.Listens.open(id, line, member(s.Result, "capabilities"))
	case mayAsk(m) && (can != 0 || s.env.RequestState.Present()):
		s.takeTurn(id, line)
	default:
		s.forward(m, id, line, meta, false, can)
	}
}

// inFlight reports whether a request with this raw id is in flight.
func (s *modernSide) inFlight(id []byte) bool {
	return s.Calls.find(id) != nil || s.Listens.find(id) != nil ||
		slices.ContainsFunc(s.Queue, func(c turn) bool { return jsonrpc.SameID(c.ID, id) })
}

// greeted starts the handshake if there was none, or if the client can do more than was declared and nothing would be
// lost. It reports whether requests can be sent now.
func (s *modernSide) greeted(can abilities, meta []byte) bool {
	if s.Questions.Shared {
		can &= everyAbility
	}
	if s.Phase == ready && can&^s.Can != 0 && len(s.Calls) == 0 && len(s.Queue) == 0 && len(s.Questions.Open) == 0 {
		s.reach(noHandshake)
	}
	if s.Meta == nil {
		s.Meta = jsonrpc.Delete(nil, meta, "progressToken")
	}
	if s.Phase == noHandshake {
		s.reach(greeting)
		s.Can |= can
		s.askOwn(mcp.Initialize, initializeParams(meta, s.Can), s.welcomed)
	}
	return s.Phase == ready
}

// welcomed takes the server's answer to the handshake.
func (s *modernSide) welcomed(line []byte) {
	result := s.env.Result.Of(line)
	if s.env.Kind != jsonrpc.Response || !jsonrpc.IsObject(result) {
		s.reach(noHandshake)
		s.refuseHeld(jsonrpc.InternalError, "the server refused the handshake: "+jsonrpc.ErrorMessage(s.env.Error.Of(line)), true)
		return
	}
	s.reach(ready)
	s.Result = bytes.Clone(result)
	s.Leveling.reset()
	s.Version, _ = jsonrpc.Unquote(member(result, "protocolVersion"))
	s.toServer(mcp.InitializedLine())
	s.Listens.resubscribe(member(result, "capabilities"))
	s.release(s)
}

// forward sends a request as a legacy client would. One that may be suspended goes under an id of the bridge: the client
// gets an answer and may reuse its id while the server still works.
func (s *modernSide) forward(m mcp.Method, id, line, meta []byte, open bool, can abilities) {
	params := withoutReserved(without(s.env.Params.Of(line), "inputResponses", "requestState"))
	c := &call{ID: bytes.Clone(id), Wire: string(id), Method: m, Open: open, Can: can, Params: params, Meta: bytes.Clone(meta),
		Level: mcp.Severity(member(meta, mcp.MetaLogLevel)), Token: bytes.Clone(member(meta, "progressToken")),
		Party: s.Questions.partyOf(id, meta), Target: s.Questions.target(line)}
	if c.Private = open || looksPrivate(id) || looksPrivate(c.Token) || s.Calls.onWire(id) != nil; c.Private { // that one is cancelled
		c.Wire = string(s.private())
		c.mark()
	}
	s.Calls.add(c)
	s.verbosity()
	s.Leveling.send(c, withParams(line, &s.env, []byte(c.Wire), c.Params), true)
	s.Questions.assign()
}

// verbosity tells the server the most verbose level that a request in flight asks for.
func (s *modernSide) verbosity() {
	if member(s.Result, "capabilities", "logging") != nil {
		s.Leveling.tell(s.Calls.mostVerbose())
	}
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

// cancelled handles the client's cancellation.
func (s *modernSide) cancelled(line []byte) {
	id := s.env.RequestID.Of(line)
	s.Queue = slices.DeleteFunc(s.Queue, func(c turn) bool { return jsonrpc.SameID(c.ID, id) })
	if l := s.Listens.find(id); l != nil {
		s.Listens.end(l)
		return
	}
	if c := s.Calls.find(id); c != nil {
		if !s.Leveling.unsent(c) {
			s.toServer(jsonrpc.Replace(nil, s.plain(line), s.env.RequestID, []byte(c.Wire)))
		}
		s.drop(c)
		s.proceed()
	}
}

// drop forgets a call and refuses its questions. A shared server may still ask for one that it has begun.
func (s *modernSide) drop(c *call) {
	begun := !s.Leveling.unsent(c)
	s.Leveling.unsend(c)
	if s.Questions.Shared && begun {
		s.Questions.cancel(c)
	} else {
		s.Calls.remove(c)
	}
	s.declineAll(c)
}

func (s *modernSide) waiting() bool { return len(s.Queue)+len(s.Leveling.Lines) > 0 }

// close answers all open requests of the client.
func (s *modernSide) close(why string) {
	s.refuseHeld(jsonrpc.InvalidRequest, why, true)
	for _, c := range s.Queue {
		s.refuse(c.ID, jsonrpc.InvalidRequest, why)
	}
	for _, c := range s.Calls {
		if c.awaited() {
			s.refuse(c.ID, jsonrpc.InvalidRequest, why)
		}
	}
	for _, l := range s.Listens.Open {
		s.refuse(l.ID, jsonrpc.InvalidRequest, why)
	}
}
