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
	Queue   calls     // whose turn has not come
	Level   int       // of the log, that the server was told; -1: none

	Listens   listens
	Questions questions
}

// newModernSide returns the side of one client, or of many if the options tell who has sent a request.
func newModernSide(c *core, opts Options) *modernSide {
	s := &modernSide{core: c, key: opts.Key, Level: -1, Listens: listens{core: c}}
	s.Questions = questions{core: c, side: s, Shared: opts.Principal != nil, Known: map[string]bool{}, principal: opts.Principal}
	if s.Questions.Shared {
		s.Can = everyAbility
	}
	return s
}

func (s *modernSide) fromClient(line []byte) {
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
		s.toClient(jsonrpc.AppendError(nil, id, mcp.CodeVersion, "Unsupported protocol version", mcp.UnsupportedVersion(version)))
	case !jsonrpc.IsObject(capabilities):
		s.refuse(id, jsonrpc.InvalidParams, "invalid params: _meta lacks "+mcp.MetaClientCapabilities)
	case gone(m):
		s.toClient(notFound(id))
	case !s.greeted(abilitiesOf(capabilities), meta):
		s.later()
	default:
		s.use(m, line, abilitiesOf(capabilities))
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
func (s *modernSide) use(m mcp.Method, line []byte, can abilities) {
	switch m {
	case mcp.Discover:
		s.toClient(jsonrpc.AppendResult(nil, s.env.ID.Of(line), discoverResult(s.Result)))
		return
	case mcp.Listen:
		s.Listens.open(s.env.ID.Of(line), line, member(s.Result, "capabilities"))
		return
	}
	c := s.newCall(m, line)
	meta := s.env.Meta.Of(c.Line)
	c.Can, c.Level, c.State, c.Came = can, mcp.Severity(member(meta, mcp.MetaLogLevel)), s.env.RequestState.Of(c.Line), s.now
	c.Party, c.Target = s.Questions.partyOf(c.ID, meta), s.Questions.target(line)
	if c.Open = mayAsk(m) && (can != 0 || c.State != nil); c.Open {
		s.takeTurn(c)
	} else {
		s.forward(c)
	}
}

// inFlight reports whether a request with this raw id is in flight.
func (s *modernSide) inFlight(id []byte) bool {
	return s.Calls.find(id) != nil || s.Queue.find(id) != nil || s.Listens.find(id) != nil
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
		s.unmet("the server refused the handshake: " + jsonrpc.ErrorMessage(s.env.Error.Of(line)))
		return
	}
	s.reach(ready)
	s.Result = bytes.Clone(result)
	s.Level = -1
	s.Version, _ = jsonrpc.Unquote(member(result, "protocolVersion"))
	s.toServer(mcp.InitializedLine())
	s.Listens.resubscribe(member(result, "capabilities"))
}

// forward sends a request as a legacy client would. One that may be suspended goes under an id of the bridge: the client
// gets an answer and may reuse its id while the server still works.
func (s *modernSide) forward(c *Call) {
	s.track(c, c.Open)
	s.verbosity()
	_ = s.env.Scan(c.Line) // it was scanned when it came
	params := withoutReserved(without(s.env.Params.Of(c.Line), "inputResponses", "requestState"))
	if c.Token != nil && looksPrivate([]byte(c.Wire)) {
		params = set(params, []byte(c.Wire), "_meta", "progressToken")
	}
	s.send(c, withParams(c.Line, &s.env, []byte(c.Wire), params))
	s.Questions.assign()
}

// verbosity tells the server the most verbose level that a request in flight asks for, unless it was told.
func (s *modernSide) verbosity() {
	level := s.Calls.mostVerbose()
	if level < 0 || level == s.Level || member(s.Result, "capabilities", "logging") == nil {
		return
	}
	s.Level = level
	s.askOwn(mcp.SetLevel, append(jsonrpc.AppendQuoted([]byte(`{"level":`), mcp.LogLevels[level]), '}'), func([]byte) {})
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
	if c := s.Queue.find(id); c != nil {
		s.Queue.remove(c)
		return
	}
	if l := s.Listens.find(id); l != nil {
		s.Listens.end(l)
		return
	}
	if c := s.Calls.find(id); c != nil {
		s.toServer(jsonrpc.Replace(nil, s.plain(line), s.env.RequestID, []byte(c.Wire)))
		s.drop(c)
		s.proceed()
	}
}

// drop forgets a call and refuses its questions. A shared server may still ask for it.
func (s *modernSide) drop(c *Call) {
	if s.Questions.Shared {
		s.Questions.cancel(c)
	} else {
		s.Calls.remove(c)
	}
	s.declineAll(c, noLonger)
}

// close answers all open requests of the client.
func (s *modernSide) close(why string) {
	for _, c := range slices.Concat(s.Queue, s.Calls) {
		if c.awaited() {
			s.refuse(c.ID, jsonrpc.InvalidRequest, why)
		}
	}
	for _, l := range s.Listens.Open {
		s.refuse(l.ID, jsonrpc.InvalidRequest, why)
	}
}
