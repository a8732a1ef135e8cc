package monitor

import (
	"slices"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// climbed are the rungs that are taken for a class while nothing helps, until a human is told.
func climbed(t *testing.T, class string, can recovery.Capabilities) (rungs []recovery.Rung) {
	t.Helper()
	now := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	p := recovery.Problem{Agent: "shop", Class: class, Confidence: "high", Since: now}
	var h recovery.History
	for range 60 {
		d := recovery.Decide(p, h, recovery.Default(), can, recovery.Fleet{}, now)
		if d.Rung == recovery.Escalate {
			return append(rungs, d.Rung)
		}
		if d.Rung != recovery.Nothing {
			rungs = append(rungs, d.Rung)
			h.Acts = append(h.Acts, d.Act(p, now))
		}
		now = now.Add(20 * time.Minute)
	}
	t.Fatalf("%s: %v, and no human is told", class, rungs)
	return nil
}

// What remedy does of itself stays within what diagnose calls a reason, and each such reason leads to something, but for
// those that are told here with why.
func TestRemediesStayWithinVerdicts(t *testing.T) {
	t.Parallel()
	beyond := map[diagnose.Class]string{ // which the monitor allows only where nothing is under way, or what ends a turn and no more
		diagnose.RateLimited:    "whose turn a limit has ended is gone on with",
		diagnose.APIBackoff:     "likewise",
		diagnose.APIFailed:      "likewise, where the model was not to be reached",
		diagnose.BudgetExceeded: "its owner wants the turn broken off",
	}
	short := map[diagnose.Class]string{
		diagnose.Stopped:  "whoever has stopped it had a reason: a human is told, unless a policy says more",
		diagnose.Orphaned: "nobody knows whether its owner closed the terminal for good: a human is told, unless a policy says more",
	}
	all := recovery.Capabilities{Nudge: true, Ask: true, Reached: true, KillTool: true, Interrupt: true, Resume: true, Restart: true, Fresh: true}
	for _, name := range registry.Classes() {
		class := diagnose.Class(name)
		reason := diagnose.Diagnosis{Class: class, Confidence: diagnose.High}.MayKill()
		rungs := climbed(t, name, all)
		touches := slices.ContainsFunc(rungs, recovery.Rung.Touches)
		switch {
		case touches && !reason && beyond[class] == "":
			t.Errorf("%s is no reason to end anything, and %v is done", class, rungs)
		case !touches && reason && short[class] == "":
			t.Errorf("%s is a reason to end something, and only %v is done", class, rungs)
		case touches && reason && short[class] != "", !touches && beyond[class] != "":
			t.Errorf("%s: the exception is none: %v", class, rungs)
		}
	}
}
