package e2e

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// Of a tool that works its limit and how long it runs. A machine that is busy has the tool begin seconds after the CLI says so.
var busyLimit, busyFor = max(8*time.Second, waits(14*time.Second)), max(14*time.Second, waits(24*time.Second))

// hasty are limits so short that whoever confuses rest, work or a provider's trouble with a stall acts upon it soon.
var hasty = declaration{
	"expect": declaration{"stale": "2s", "startup": "1m", "model_silent": "20s", "tool": busyLimit.String(), "waiting": "2s", "progress": "20s"},
	"start":  declaration{"cmd": []string{"false"}, "resume": []string{"false"}},
}

// TestMonitorWakesNobodyInVain: an agent that rests, one whose tool works for long, and one whose provider recovers by
// itself are left alone, and nobody hears of them.
func TestMonitorWakesNobodyInVain(t *testing.T) {
	needFull(t, "it judges that nothing comes within some time")
	t.Parallel()
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind+"/rest", func(t *testing.T) {
			t.Parallel()
			a, m := startWatched(t, kind, mockmodel.Answer, agentSetup{}, hasty, []string{})
			a.turnEnds()
			m.rests("idle")
			a.lives(t, waits(15*time.Second)) // nothing announces that nothing will come
			m.isQuiet("idle")
		})
		t.Run(kind+"/tool", func(t *testing.T) {
			t.Parallel()
			setup := agentSetup{script: mockmodel.Script{Command: fmt.Sprintf("sh check.sh %.0f busy", busyFor.Seconds())}}
			a, m := startWatched(t, kind, mockmodel.Tool, setup, hasty, []string{})
			m.judges("working")
			a.turnEnds()
			a.lives(t, 0)
			m.judges("idle")
			m.isQuiet("idle")
		})
		t.Run(kind+"/provider", func(t *testing.T) {
			t.Parallel()
			setup := agentSetup{}
			if kind == "claude" {
				setup.env = waitsOut // else it may give up before the monitor has looked
			}
			a, m := startWatched(t, kind, mockmodel.Overload, setup, hasty, []string{})
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
	m.rests("idle")
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

// rests waits until the last judgement is this one.
func (m *watcher) rests(class string) {
	m.t.Helper()
	m.await("the last verdict "+class, func() bool {
		all, _ := m.judgements(0)
		return len(all) > 0 && all[len(all)-1].Verdict.Class == class
	})
	shows(m.t, class)
}

// isQuiet fails the test when the agent does not come to be judged so in the end, or anything was told or done.
func (m *watcher) isQuiet(class string) {
	m.t.Helper()
	m.rests(class)
	m.leavesAlone()
}

// leavesAlone fails the test when an agent was called stalled, or anything was told or done.
func (m *watcher) leavesAlone() {
	m.t.Helper()
	all, _ := m.judgements(0)
	for _, j := range all {
		if j.Verdict.Stall != "" {
			m.t.Errorf("%s was called %s: %s", j.Agent, j.Verdict.Class, j.Verdict.Details)
		}
	}
	m.tellsNobody()
	if journal := m.journal(); journal != "" {
		m.t.Errorf("something was done:\n%s", journal)
	}
}
