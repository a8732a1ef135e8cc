package bridge

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// phase is how far the handshake is.
type phase uint8

const (
	noHandshake phase = iota // none has begun
	greeting                 // the server has been asked
	ready                    // both sides know each other
)

// legacySide is a client of the legacy era before a modern server.
type legacySide struct {
	*core
	session.Session // what lasts of the conversation, but its subscriptions, which are in Watch

	Hello    hello     // of the handshake under way
	Can      abilities // of the client
	Envelope []byte    // raw _meta of each request, without the log level
	Offer    []byte    // raw capabilities of the server

	Watch watch
}

// hello is for whom the server is asked for its identity, and how often it was.
type hello struct {
	ID    []byte // raw; nil: nobody waits for the answer, since the client has had one before
	Tries int
}

// fromClient takes one message; s.env was scanned from it.
func (s *legacySide) fromClient(line []byte) {
	if s.Phase == noHandshake && s.InitParams != nil && mcp.Lookup(s.env.Method.Of(line)) != mcp.Initialize {
		s.greet(hello{}) // the server that it goes on with could not be used before
		s.later()
		return
	}
	switch s.env.Kind {
	case jsonrpc.Request:
		s.request(line)
	case jsonrpc.Notification:
		s.notification(line)
	default:
		s.answered(line)
	}
}

func (s *legacySide) request(line []byte) {
	id := s.env.ID.Of(line)
	m := mcp.Lookup(s.env.Method.Of(line))
	switch {
	case s.Calls.find(id) != nil:
		s.refuse(id, jsonrpc.InvalidRequest, "invalid request: a request with this id is still in flight")
	case m == mcp.Initialize:
		s.initialize(id, s.env.Params.Of(line))
	case m == mcp.Ping:
		s.toClient(jsonrpc.AppendResult(nil, id, nil))
	case s.Phase != ready:
		s.refuse(id, jsonrpc.InvalidRequest, "invalid request: initialize comes first")
	default:
		s.use(m, id, line)
	}
}

// use handles a request that needs the server.
func (s *legacySide) use(m mcp.Method, id, line []byte) {
	switch m {
	case mcp.SetLevel:
		s.setLevel(id, s.env.Params.Of(line))
	case mcp.Subscribe, mcp.Unsubscribe:
		s.subscribe(m, line)
	case mcp.Discover, mcp.Listen, mcp.TasksGet, mcp.TasksList, mcp.TasksResult, mcp.TasksUpdate, mcp.TasksCancel:
		s.toClient(notFound(id))
	default:
		s.forward(m, line)
	}
}

// forward sends a request as a modern client would.
func (s *legacySide) forward(m mcp.Method, line []byte) {
	c := s.newCall(m, line)
	params, ok := s.params(s.env.Params.Of(line))
	if !ok {
		s.refuse(c.ID, jsonrpc.InvalidParams, "invalid params: they must be an object")
		return
	}
	s.track(c, false)
	s.send(c, withParams(line, &s.env, []byte(c.Wire), params))
}

// params are raw params as a modern client would send them. It reports whether they are an object.
func (s *legacySide) params(raw []byte) ([]byte, bool) {
	return withEnvelope(without(raw, "task"), s.envelope())
}

// mayAsk reports whether a request may be answered with questions to the client.
func mayAsk(m mcp.Method) bool {
	return m == mcp.ToolsCall || m == mcp.PromptsGet || m == mcp.ResourcesRead
}

// initialize asks the server for its identity. A client that initializes again gets a clean connection.
func (s *legacySide) initialize(id, params []byte) {
	s.close("the client began a new session")
	s.introduced(bytes.Clone(params), settledVersion(member(params, "protocolVersion")))
	s.greet(hello{ID: bytes.Clone(id)})
}

// introduced notes who the client is, by the raw params of its initialize.
func (s *legacySide) introduced(params []byte, version string) {
	asked := member(params, "capabilities")
	s.InitParams, s.Version = params, version
	s.Can = abilitiesOf(asked).since(s.Version)
	info := member(params, "clientInfo")
	if !jsonrpc.IsObject(info) {
		info = nil
	}
	s.Envelope = mcp.RequestMeta(info, modernCapabilities(asked, s.Version))
}

// greet asks the server for its identity.
func (s *legacySide) greet(h hello) {
	s.reach(greeting)
	s.Hello = h
	s.askOwn(mcp.Discover, set([]byte("{}"), s.Envelope, "_meta"), s.discovered)
}

// envelope is the raw _meta of the next request. A server without logging is told no level.
func (s *legacySide) envelope() []byte {
	if level := member(s.LogLevel, "level"); level != nil && member(s.Offer, "logging") != nil {
		return set(s.Envelope, level, mcp.MetaLogLevel)
	}
	return s.Envelope
}

// close forgets an earlier session of the client.
func (s *legacySide) close(why string) {
	for _, c := range slices.Clone(s.Calls) {
		if c.isSent() {
			s.toServer(mcp.CancelledLine([]byte(c.Wire), why))
		}
		s.drop(c, why)
		s.refuse(c.ID, jsonrpc.InvalidRequest, why)
	}
	s.closeWatch(replaced)
	s.reach(noHandshake)
	s.Session = session.Session{Version: s.Version}
}

// discovered takes the server's answer to the handshake.
func (s *legacySide) discovered(line []byte) {
	result, err := s.env.Result.Of(line), s.env.Error.Of(line)
	switch {
	case s.env.Kind == jsonrpc.Response && mcp.NamesModern(member(result, "supportedVersions")):
		s.greeted(result)
	case jsonrpc.ErrorCode(err) == mcp.CodeVersion && s.Hello.Tries == 0 && mcp.NamesModern(member(err, "data", "supported")):
		s.greet(hello{ID: s.Hello.ID, Tries: 1}) // some refuse a client's first request, with the right version in the error
		return
	default:
		text := "the server speaks another version of the protocol than " + mcp.ModernVersion
		if err != nil && jsonrpc.ErrorCode(err) != mcp.CodeVersion {
			text = jsonrpc.ErrorMessage(err)
		}
		s.unmet(text)
		if s.Hello.ID != nil {
			s.InitParams = nil
			s.refuse(s.Hello.ID, jsonrpc.InternalError, text)
		}
	}
	s.Hello = hello{}
}

// greeted answers the client's initialize from the server's DiscoverResult.
func (s *legacySide) greeted(discover []byte) {
	s.reach(ready)
	s.Offer = bytes.Clone(member(discover, "capabilities"))
	s.InitResult = initializeResult(discover, s.Version, member(s.InitParams, "capabilities", "extensions"))
	if s.Hello.ID != nil {
		s.toClient(jsonrpc.AppendResult(nil, s.Hello.ID, s.InitResult))
	} else if s.Initialized || len(s.Watch.URIs) > 0 { // it has its answer
		s.renew()
	}
}

// notification takes a notification of the client.
func (s *legacySide) notification(line []byte) {
	switch mcp.Lookup(s.env.Method.Of(line)) {
	case mcp.NoteInitialized:
		if s.Phase == ready {
			s.openWatch()
		}
	case mcp.NoteCancelled:
		s.cancelled(line)
	case mcp.NoteProgress:
		// of an answer to one of the bridge's questions: modern servers have no such notification
	default:
		if name, _ := jsonrpc.Unquote(s.env.Method.Of(line)); name == "notifications/roots/list_changed" ||
			name == "notifications/tasks/status" || s.Phase != ready {
			return
		}
		s.toServer(line)
	}
}

// cancelled handles the client's cancellation.
func (s *legacySide) cancelled(line []byte) {
	c := s.Calls.find(s.env.RequestID.Of(line))
	if c == nil {
		return
	}
	if c.isSent() {
		s.toServer(jsonrpc.Replace(nil, line, s.env.RequestID, []byte(c.Wire)))
	}
	s.drop(c, "the request was cancelled")
}

// drop forgets a call, and cancels its questions to the client.
func (s *legacySide) drop(c *Call, why string) {
	s.Calls.remove(c)
	for _, a := range c.unanswered() {
		s.toClient(mcp.CancelledLine(a.ID, why))
	}
}

// setLevel stores the log level: each request has it from now on.
func (s *legacySide) setLevel(id, params []byte) {
	switch {
	case member(s.Offer, "logging") == nil:
		s.toClient(notFound(id))
	case mcp.Severity(member(params, "level")) < 0:
		s.refuse(id, jsonrpc.InvalidParams, "invalid params: no such log level")
	default:
		s.SetLogLevel(params)
		s.toClient(jsonrpc.AppendResult(nil, id, nil))
	}
}

func (s *legacySide) tick() {
	s.tickRounds()
	s.tickWatch()
}

func (s *legacySide) deadline() time.Time {
	return deadline.Earliest(s.roundsDeadline(), s.watchDeadline())
}
