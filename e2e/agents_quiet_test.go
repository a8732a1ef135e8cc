package e2e

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// hasty are limits so short that whoever confuses rest, work or a provider's trouble with a stall acts upon it soon.
var hasty = declaration{
	"expect": declaration{"stale": "2s", "startup": "1m", "model_silent": "20s", "tool": waits(14 * time.Second).String(), "waiting": "2s", "progress": "20s"},
	"start":  declaration{"cmd": []string{"false"}, "resume": []string{"false"}},
}

// TestMonitorWakesNobodyInVain: an agent that rests, one whose tool works for long, and one whose provider recovers by
// itself are left alone, and nobody hears of them.
func TestMonitorWakesNobodyInVain(t *testing.T) {
	needFull(t, "it judges that nothing comes within some time")
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind+"/rest", func(t *testing.T) {
			t.Parallel()
			a, m := startWatched(t, kind, mockmodel.Answer, agentSetup{}, hasty, []string{})
			m.judges("idle")
			a.lives(t, waits(15*time.Second)) // nothing announces that nothing will come
			m.isQuiet("idle")
		})
		t.Run(kind+"/tool", func(t *testing.T) {
			t.Parallel()
			setup := agentSetup{script: mockmodel.Script{Command: fmt.Sprintf("sh check.sh %.0f busy", max(8, waits(24*time.Second).Seconds()))}}
			a, m := startWatched(t, kind, mockmodel.Tool, setup, hasty, []string{})
			m.judges("working")
			a.turnEnds()
			a.lives(t, 0)
			m.judges("idle")
			m.isQuiet("idle")
		})
		t.Run(kind+"/provider", func(t *testing.T) {
			t.Parallel()
			a, m := startWatched(t, kind, mockmodel.Overload, agentSetup{}, hasty, []string{})
			a.await("a second request", func() bool { return a.model.Turns() >= 2 })
			if kind == "claude" {
				m.judges("api_backoff") // Codex' rollout does not show it
			}
			a.model.SetMode(mockmodel.Answer)
			a.turnEnds()
			a.lives(t, 0)
			m.judges("idle")
			m.isQuiet("idle")
		})
	}
}

// TestMonitorLeavesBackgroundTasksAlone: a turn that has left a command running is at rest, also when that ends badly, for the CLI
// tells its session.
func TestMonitorLeavesBackgroundTasksAlone(t *testing.T) {
	needFull(t, "it judges that nothing comes within some time")
	t.Parallel()
	d := maps.Clone(hasty)
	expect := maps.Clone(hasty["expect"].(declaration))
	expect["task"] = "2s"
	d["expect"] = expect
	a, m := startWatched(t, "claude", mockmodel.Background, agentSetup{}, d, []string{})
	a.awaitStatus("shell", "")
	m.judges("idle")
	a.lives(t, waits(10*time.Second)) // nothing announces that nothing will come
	a.model.SetMode(mockmodel.Answer)
	a.kills("check.sh")
	a.await("the turn about its end", func() bool { return a.model.Turns() >= 3 })
	a.turnEnds()
	a.lives(t, waits(5*time.Second))
	m.isQuiet("idle")
}

// lives fails the test when the agent ends within d.
func (a *agent) lives(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-a.done:
		t.Errorf("the agent was ended: %v", a.cmd.ProcessState)
	case <-time.After(d):
	}
}

// isQuiet fails the test when the agent is judged otherwise now, or anything was told or done.
func (m *watcher) isQuiet(class string) {
	m.t.Helper()
	all, _ := m.judgements(0)
	if last := all[len(all)-1].Verdict; last.Class != class {
		m.t.Errorf("in the end it is %s: %s", last.Class, last.Details)
	}
	for _, j := range all {
		if j.Verdict.Stall != "" {
			m.t.Errorf("it was called %s: %s", j.Verdict.Class, j.Verdict.Details)
		}
	}
	m.tellsNobody()
	if journal := m.journal(); journal != "" {
		m.t.Errorf("something was done:\n%s", journal)
	}
}
