package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// Codex writes nothing when a person has allowed a call at its dialog. The title of its terminal goes on turning, so nobody is
// asked any more while the call runs.
func TestACallThatWasAllowedAtTheTerminal(t *testing.T) {
	t.Parallel()
	const asked, ages = 20 * time.Minute, 20 * diagnose.Span(time.Minute)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	minute := diagnose.Span(time.Minute)
	for name, tt := range map[string]struct {
		title   diagnose.Title
		orphan  bool
		open    agentcli.Open
		since   diagnose.Span // of what is open
		went    bool          // it has left the dialog of a hook's request
		waiting bool          // a person is asked
	}{
		"no title":                {diagnose.Title{}, false, agentcli.Permission, ages, false, true},
		"its title asks":          {diagnose.Title{Status: agentcli.Waiting, Age: ages}, false, agentcli.Permission, ages, false, true},
		"allowed a minute ago":    {diagnose.Title{Status: agentcli.Busy, Age: minute}, false, agentcli.Tool, minute, true, false},
		"before the dialog":       {diagnose.Title{Status: agentcli.Busy, Age: 2 * ages}, false, agentcli.Tool, ages, false, false},
		"its terminal has closed": {diagnose.Title{Status: agentcli.Busy, Age: minute}, true, agentcli.Permission, ages, true, true},
	} {
		g := gathering{setting: &setting{now: Clocks{Wall: now}, sources: &sources{}}, e: &diagnose.Evidence{Watched: true, Title: tt.title}, f: &finding{}}
		g.e.Process = diagnose.Proc{Life: diagnose.Alive, Age: 2 * ages, Orphaned: tt.orphan}
		v := agentcli.Session{Kind: agentcli.Codex, ID: "s", Status: agentcli.Busy, Turn: agentcli.Turn{
			Open: agentcli.Permission, OpenAt: now.Add(-asked), LastAt: now.Add(-asked), Tool: "exec",
		}}
		d := g.session(&v)
		if d.Open != tt.open || d.OpenAge != tt.since {
			t.Errorf("%s: %s is open for %s, want %s for %s", name, d.Open, d.OpenAge, tt.open, tt.since)
		}
		g.e.Sessions = []diagnose.Session{d}
		if got := g.wentOnSince(now.Add(-asked)); got != tt.went {
			t.Errorf("%s: it has left the dialog: %v", name, got)
		}
		if v := diagnose.Classify(*g.e, diagnose.Policy{}); (v.Class == diagnose.WaitingPermission) != tt.waiting {
			t.Errorf("%s: it is called %s: %s", name, v.Class, v.Details)
		}
	}
}
