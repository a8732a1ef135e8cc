package bridge

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// fromServer takes a message of the server; s.env was scanned from it.
func (s *modernSide) fromServer(line []byte) {
	switch s.env.Kind {
	case jsonrpc.Response, jsonrpc.ErrorResponse:
		if s.takeOwn(line) {
			return
		}
		if t := onWire(s.Calls, s.env.ID.Of(line)); t.cancelled() {
			s.over(t)
		} else if t != nil {
			s.served(t, line)
		}
	case jsonrpc.Request:
		s.questioned(line)
	case jsonrpc.Notification:
		s.told(line)
	}
}

// served takes the server's answer to a call.
func (s *modernSide) served(t *task, line []byte) {
	if t.suspended() {
		if !t.Afresh && t.Finished == nil {
			t.Finished = bytes.Clone(line)
			s.leftOver(t)
		}
		return
	}
	s.finish(t, line)
	s.proceed()
}

// leftOver refuses the questions of a call that the server has answered before its client did.
func (s *modernSide) leftOver(t *task) {
	if s.Questions.Shared {
		s.declineAll(t) // one may belong to a cancelled call that waits
		s.proceed()
	}
	t.Asks, t.Next = nil, nil
}

// finish sends the waiting client the server's answer. s.env was scanned from it.
func (s *modernSide) finish(t *task, line []byte) {
	if s.env.Kind == jsonrpc.Response {
		delete(s.Calls, t.Wire)
		s.toClient(jsonrpc.Splice(nil, line, jsonrpc.Change{At: s.env.ID, With: t.ID}, jsonrpc.Change{At: s.env.Result, With: modernResult(t.Method, s.env.Result.Of(line))}))
		return
	}
	raw := s.env.Error.Of(line)
	if jsonrpc.ErrorCode(raw) == mcp.CodeOpenURL && s.openURLs(t, raw) {
		return
	}
	delete(s.Calls, t.Wire)
	if jsonrpc.ErrorCode(raw) == mcp.CodeOpenURL {
		s.toClient(lacksURL(t.ID, jsonrpc.ErrorMessage(raw)))
		return
	}
	s.toClient(jsonrpc.Splice(nil, line, jsonrpc.Change{At: s.env.ID, With: t.ID}, jsonrpc.Change{At: s.env.Error, With: modernError(t.Method, raw)}))
}

// told takes a notification of the server.
func (s *modernSide) told(line []byte) {
	switch m := mcp.Lookup(s.env.Method.Of(line)); m {
	case mcp.NoteProgress:
		s.progressed(line)
	case mcp.NoteCancelled:
		s.Questions.withdrawn(s.env.RequestID.Of(line))
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged, mcp.NoteResourceUpdated:
		s.Listens.changed(m, line)
	default:
		switch name, _ := jsonrpc.Unquote(s.env.Method.Of(line)); name {
		case "notifications/message":
			s.logged(line)
		case "notifications/elicitation/complete", "notifications/tasks/status":
			// the modern era has neither
		default:
			s.toClient(s.plain(line))
		}
	}
}

// logged forwards a log message while a request in flight asks for its level. The legacy era has one level for all.
func (s *modernSide) logged(line []byte) {
	level := mcp.Severity(s.env.Level.Of(line))
	calls, cancelled := s.Calls.byAge()
	if maybe, _ := s.Questions.candidates(cancelled, calls); s.Questions.Shared && len(calls)+len(maybe) > 1 {
		return // whose it is cannot be told
	}
	for _, t := range calls {
		if t.awaited() && t.Level >= 0 && level >= t.Level {
			s.toClient(s.plain(line))
			return
		}
	}
}

// progressed forwards progress to the client's present request. While there is none, the last progress is kept for the
// call's next round.
func (s *modernSide) progressed(line []byte) {
	token := s.env.ProgressToken.Of(line)
	if t := s.Calls[string(token)]; t != nil && t.Private {
		if t.suspended() {
			t.Behind = bytes.Clone(line)
			return
		}
		t.Behind = nil
		if t.Token == nil {
			return
		}
		line = jsonrpc.Replace(nil, line, s.env.ProgressToken, t.Token)
		if s.env.Scan(line) != nil {
			return
		}
	}
	s.toClient(s.plain(line))
}

// over forgets a cancelled call that the server has answered.
func (s *modernSide) over(t *task) {
	delete(s.Calls, t.Wire)
	s.proceed()
}

// restarted forgets cancelled calls: the new process does not know them.
func (s *modernSide) restarted() {
	s.Calls.dropCancelled()
	s.proceed()
}
