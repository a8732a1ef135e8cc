package diagnose

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// A tool beyond its limit is not called hung while its use of the processor is being read, but not for ever.
func TestAToolIsJudgedByItsProcessor(t *testing.T) {
	p := Policy{Tool: Span(14 * time.Second)}
	at := func(open time.Duration, cpu CPU) Class {
		return Classify(Evidence{
			Status: "watched", Watched: true, Process: Proc{Life: Alive}, CPU: cpu,
			Sessions: []Session{{Kind: "codex", Status: "busy", Open: agentcli.Tool, OpenAge: Span(open), Tool: "exec"}},
		}, p).Class
	}
	pending := CPU{Pending: true}
	if got := at(15*time.Second, pending); got == ToolHung {
		t.Errorf("before the second reading it is called %s", got)
	}
	if got := at(15*time.Second, CPU{}); got != ToolHung {
		t.Errorf("where no reading comes it is called %s", got)
	}
	if got := at(15*time.Second, CPU{Known: true}); got != ToolHung {
		t.Errorf("a tool that uses no processor is called %s", got)
	}
	if got := at(time.Minute, pending); got != ToolHung {
		t.Errorf("after a minute it is called %s", got)
	}
}
