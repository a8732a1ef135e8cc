package streamhttp

import (
	"net/http"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// kindOf is the member that says what a line of the hub is: result, error or method. It is nearly always before anything long, and
// what follows on it is not looked at.
func kindOf(line []byte) string { return jsonrpc.FirstOf(line, "result", "error", "method") }

// isAnswer reports whether a line of the hub is a response.
func isAnswer(line []byte) bool {
	kind := kindOf(line)
	return kind == "result" || kind == "error"
}

// statusOf is the HTTP status of an answer of the modern era (2026-07-28, Streamable HTTP; SEP-2575).
func statusOf(line []byte) int {
	if kindOf(line) != "error" {
		return http.StatusOK
	}
	switch jsonrpc.ErrorCode(jsonrpc.Find(line, "error").Of(line)) {
	case jsonrpc.MethodNotFound:
		return http.StatusNotFound
	case jsonrpc.InvalidParams, mcp.CodeHeaders, mcp.CodeCapability, mcp.CodeVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}
