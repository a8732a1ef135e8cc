package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// The exit statuses of a CLI that mean an error which a start does not fix, or a limit of its own, are no crash.
func TestExitsOfACLI(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]diagnose.Class{
		1: diagnose.Crashed, 41: diagnose.ExecutionError, 42: diagnose.ExecutionError, 44: diagnose.ExecutionError, 52: diagnose.ExecutionError,
		53: diagnose.BudgetExceeded, 54: diagnose.ExecutionError, 55: diagnose.ExecutionError, 130: diagnose.ExecutionError, 173: diagnose.Crashed,
	} {
		e := diagnose.Evidence{Watched: true, Process: diagnose.Proc{Life: diagnose.Dead}, Exit: diagnose.Exit{Known: true, Code: code}}
		if got := diagnose.Classify(e, expected(registry.Agent{Kind: agentcli.Gemini})).Class; got != want {
			t.Errorf("exit status %d: %s, want %s", code, got, want)
		}
	}
}

// The first heartbeat of a command that has beaten in an earlier run may take as long as any other.
func TestFirstHeartbeatOfACommand(t *testing.T) {
	t.Parallel()
	for minutes, want := range map[int]diagnose.Class{4: diagnose.Starting, 7: diagnose.StartupBlocked} {
		e := diagnose.Evidence{Watched: true, Artefact: diagnose.Artefact{Expected: true},
			Process: diagnose.Proc{Life: diagnose.Alive, AfterBeat: true, Age: diagnose.Span(time.Duration(minutes) * time.Minute)}}
		if got := diagnose.Classify(e, expected(registry.Agent{Kind: registry.Command})).Class; got != want {
			t.Errorf("%d minutes after its start: %s, want %s", minutes, got, want)
		}
	}
}
