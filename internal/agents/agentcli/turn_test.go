package agentcli

import (
	"encoding/json"
	"testing"
	"time"
)

// A tool of an MCP server may have the name of another CLI's tool: it is one like others.
func TestToolsOfAnotherCLI(t *testing.T) {
	t.Parallel()
	args := json.RawMessage(`{"command":"git commit"}`)
	for _, test := range []struct {
		own  *tools
		tool string
	}{{&geminiTools, "question"}, {&geminiTools, "write"}, {&claudeTools, "bash"}, {&openCodeTools, "ask_user"}, {&openCodeTools, "Bash"}} {
		if c := test.own.call("1", test.tool, args, time.Time{}); c.asks != Tool || c.edits || c.polls || c.wakes {
			t.Errorf("%s: %+v", test.tool, c)
		}
	}
}
