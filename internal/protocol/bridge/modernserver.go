package bridge

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// fromServer takes a message of the server; s.env was scanned from it.
func (s *modernSide) fromServer(line []byte) {
	switch s.env.Kind {
	case jsonrpc.Request:
		s.questioned(line)
	case jsonrpc.Notification:
		s.told(line)
	}
}

// served takes the server's answer to a call.
func (s *modernSide) served(c *Call, line []byte) {
	switch {
	case c.cancelled():
		s.over(c)
	case c.suspended():
		c.Finished = bytes.Clone(line)
		s.leftOver(c)
	default:
		s.finish(c, line)
		s.proceed()
	}
}

// leftOver refuses the questions of a call that the server has answered before its client did.
func (s *modernSide) leftOver(c *Call) {
	if s.Questions.Shared {
		s.declineAll(c, noLonger) // one may belong to a cancelled call that waits
		s.proceed()
	}
	c.Asks, c.Next = nil, nil
}

// finish sends the waiting client the server's answer. s.env was scanned from it.
func (s *modernSide) finish(c *Call, line []byte) {
	raw := s.env.Error.Of(line)
	opens := jsonrpc.ErrorCode(raw) == mcp.CodeOpenURL
	if opens && s.openURLs(c, raw) {
		return
	}
	s.Calls.remove(c)
	body := jsonrpc.Change{At: s.env.Error, With: modernError(c.Method, raw)}
	switch {
	case opens:
		s.toClient(jsonrpc.AppendError(nil, c.ID, mcp.CodeCapability, jsonrpc.ErrorMessage(raw),
			[]byte(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`)))
		return
	case s.env.Kind == jsonrpc.Response:
		body = jsonrpc.Change{At: s.env.Result, With: modernResult(c.Method, s.env.Result.Of(line))}
	}
	s.toClient(jsonrpc.Splice(nil, line, jsonrpc.Change{At: s.env.ID, With: c.ID}, body))
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
	living, cancelled := s.Calls.apart()
	if maybe, _ := s.Questions.candidates(cancelled, living); s.Questions.Shared && len(living)+len(maybe) > 1 {
		return // whose it is cannot be told
	}
	if living.has(func(c *Call) bool { return c.awaited() && c.Level >= 0 && level >= c.Level }) {
		s.toClient(s.plain(line))
	}
}

// progressed forwards progress to the client's present request. While there is none, the last progress is kept for the
// call's next round.
func (s *modernSide) progressed(line []byte) {
	token := s.env.ProgressToken.Of(line)
	if c := s.Calls.onWire(token); c != nil && looksPrivate(token) {
		if c.suspended() {
			c.Behind = bytes.Clone(line)
			return
		}
		c.Behind = nil
		if c.Token == nil {
			return
		}
		line = jsonrpc.Replace(nil, line, s.env.ProgressToken, c.Token)
		if s.env.Scan(line) != nil {
			return
		}
	}
	s.toClient(s.plain(line))
}

// over forgets a cancelled call that the server has answered.
func (s *modernSide) over(c *Call) {
	s.Calls.remove(c)
	s.proceed()
}

// restarted forgets cancelled calls: the new process does not know them.
func (s *modernSide) restarted() {
	s.Calls.dropCancelled()
	s.proceed()
}
