package control

import (
	"testing"

	"github.com/outlive-mcp/outlive/internal/line/backend"
)

// A call of a server is one call, whatever its client has asked before it.
func TestCurvesAreOfCalls(t *testing.T) {
	c := backend.Counters{Calls: []backend.Calls{
		{Method: "initialize", OK: 1}, {Method: "tools/list", OK: 2, Errors: 1}, {Method: "ping", OK: 7},
		{Method: "resources/read", OK: 1}, {Method: "tools/call", Tool: "pay", OK: 2, ToolError: 1}, {OK: 1},
	}}
	if got := totals(c); got.Calls != 5 || got.Errors != 1 {
		t.Errorf("%d calls, %d errors; want 5 and 1", got.Calls, got.Errors)
	}
}
