package bridge

import (
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// fromServer takes a message of the server; s.env was scanned from it.
func (s *legacySide) fromServer(line []byte) {
	if s.env.Kind != jsonrpc.Notification {
		return
	}
	switch mcp.Lookup(s.env.Method.Of(line)) {
	case mcp.NoteAcknowledged:
		s.acknowledged(line)
	case mcp.NoteCancelled:
		s.watchEnded(string(s.env.RequestID.Of(line)), line)
	case mcp.NoteToolsChanged, mcp.NotePromptsChanged, mcp.NoteResourcesChanged, mcp.NoteResourceUpdated:
		s.changed(line)
	default:
		s.toClient(s.plain(line))
	}
}

// served takes the server's answer to a call.
func (s *legacySide) served(c *Call, line []byte) {
	if s.env.Kind == jsonrpc.Response && mayAsk(c.Method) && jsonrpc.EqualString(s.env.ResultType.Of(line), "input_required") {
		s.inputRequired(c, s.env.Result.Of(line))
		return
	}
	s.Calls.remove(c)
	s.completeURLs(c)
	body := jsonrpc.Change{At: s.env.Error, With: legacyError(s.env.Error.Of(line))}
	if s.env.Kind == jsonrpc.Response {
		body = jsonrpc.Change{At: s.env.Result, With: legacyResult(c.Method, s.Version, s.env.Result.Of(line))}
	}
	s.toClient(jsonrpc.Splice(nil, line, jsonrpc.Change{At: s.env.ID, With: c.ID}, body))
}
