package e2e

import (
	"maps"
	"net/http"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// TestMonitorHearsAContradiction: somebody reports by a ping that the agent has ended with an error, and it lives. Neither is
// believed: nothing is done to it.
func TestMonitorHearsAContradiction(t *testing.T) {
	needFull(t, "it judges that nothing is done within some time")
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := newWatcher(t)
			m.pings = freeAddress(t)
			d := declaration{"start": declaration{"cmd": []string{"false"}, "resume": []string{"false"}}}
			a := m.startAgent(kind, mockmodel.Tool, agentSetup{}, d, nil, "--answers", "off")
			m.awaitTool()
			shown := records([]byte(m.outlive("agent", "show", agentName, "--json", "--home", m.dir)))
			response, err := http.Get(shown[0]["ping"].(string) + "/1")
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			j := m.judges("contradiction")
			t.Logf("%s: %s", j.Verdict.Rule, j.Verdict.Details)
			a.lives(t, waits(6*time.Second)) // one more look at least
			m.never("crashed", "execution_error")
		})
	}
}

// TestMonitorComesTooLate: the agent and the wrapper around it were killed before anybody watched. The wrapper's report names the
// process, so it is known to have ended; its session was never seen, so nothing can be resumed, and a human is told.
func TestMonitorComesTooLate(t *testing.T) {
	needFull(t, "the way of a crash is tried by TestMonitorResumes at the door")
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			m := newWatcher(t)
			d := declaration{"expect": declaration{"stale": "2s"}, "start": declaration{"resume": resume(kind)}}
			setup := agentSetup{wrapped: true, prepare: func(a *agent) {
				m.watches(a, "--answers", "off")
				m.declare(d)
			}}
			a := startAgent(t, kind, mockmodel.Tool, setup)
			a.awaitHook("PreToolUse")
			all := a.w.processes("")
			for pid := range all {
				_ = syscall.Kill(pid, syscall.SIGKILL) // a hook may have ended by itself
			}
			a.await("the end of every process", func() bool {
				maps.DeleteFunc(all, func(pid int, _ string) bool { return dead(pid) })
				return len(all) == 0
			})
			<-a.done
			turns := a.model.Turns()
			m.start()
			j := m.judges("crashed")
			t.Logf("%s: %s", j.Verdict.Rule, j.Verdict.Details)
			m.tells(1, says("shop"))
			if n := a.model.Turns(); n != turns {
				t.Errorf("%d turns, %d before: it was started", n, turns)
			}
		})
	}
}

// TestMonitorCountsTheCost: Claude Code writes what a session has cost when a run of it ends. From then on the limit holds, for
// whoever goes on with the session.
func TestMonitorCountsTheCost(t *testing.T) {
	t.Parallel()
	const session = "6b3c1c9e-5a0f-4b53-9b1e-0d6a3a3f7a11"
	m := newWatcher(t)
	first := agentSetup{headless: true, args: []string{"--session-id", session}}
	a := m.startAgent("claude", mockmodel.Answer, first, declaration{"expect": declaration{"max_cost_usd": 0.0001}}, nil, "--answers", "off")
	a.ended()
	a.model.SetMode(mockmodel.Hang)
	env := a.cmd.Env
	a.cmd = exec.Command(a.cmd.Path, "-p", "--resume", session, "Once more")
	a.cmd.Dir, a.cmd.Env = a.project, env
	a.startHeadless()
	j := m.judges("budget_exceeded")
	t.Logf("%s: %s", j.Verdict.Rule, j.Verdict.Details)
}
