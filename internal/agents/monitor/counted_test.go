package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// A model that thinks for long is not silent while its CLI counts tokens at the terminal: its files have the answer at its end.
func TestAModelWhoseTokensAreCounted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	asked := now.Add(-20 * time.Minute)
	for name, tt := range map[string]struct {
		report *agentrun.Report
		want   diagnose.Class
	}{
		"no wrapper":            {nil, diagnose.ModelSilent},
		"nothing is counted":    {&agentrun.Report{PID: 7}, diagnose.ModelSilent},
		"it counts":             {&agentrun.Report{PID: 7, CountAt: now.Add(-time.Minute)}, diagnose.AtWork},
		"it has stopped":        {&agentrun.Report{PID: 7, CountAt: now.Add(-10 * time.Minute)}, diagnose.ModelSilent},
		"of the answer before":  {&agentrun.Report{PID: 7, CountAt: asked.Add(-time.Minute)}, diagnose.ModelSilent},
		"of the process before": {&agentrun.Report{PID: 6, CountAt: now.Add(-time.Minute)}, diagnose.ModelSilent},
	} {
		g := gathering{setting: &setting{now: Clocks{Wall: now}, sources: &sources{}}, e: &diagnose.Evidence{Watched: true}, report: tt.report}
		g.agent.Declared = &registry.Agent{}
		g.f = &finding{process: process.Identity{PID: 7}}
		g.e.Process = diagnose.Proc{Life: diagnose.Alive, Age: diagnose.Span(time.Hour)}
		v := agentcli.Session{Kind: agentcli.Claude, ID: "s", Status: agentcli.Busy, Turn: agentcli.Turn{Open: agentcli.Model, OpenAt: asked, LastAt: asked}}
		g.e.Sessions = []diagnose.Session{g.session(&v)}
		if v := diagnose.Classify(*g.e, diagnose.Policy{}); v.Class != tt.want {
			t.Errorf("%s: it is called %s: %s", name, v.Class, v.Details)
		}
	}
}
