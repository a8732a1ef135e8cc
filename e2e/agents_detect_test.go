package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// detection brings an agent into a state and says what the monitor must call it.
type detection struct {
	name  string
	mode  mockmodel.Mode
	setup agentSetup
	more  declaration
	class string
	drive func(a *agent, m *watcher) // into the state; nil: the mode does it
}

// short are limits that a test can wait for.
var short = declaration{"expect": declaration{"model_silent": "3s", "startup": "3s"}}

// exits lets a human end the CLI at its prompt, as people do.
func exits(a *agent, m *watcher) {
	m.judges("idle")
	a.enter("/exit")
	a.ended()
}

var detections = map[string][]detection{
	"claude": {
		{"working", mockmodel.Tool, agentSetup{}, nil, "working", func(a *agent, _ *watcher) { a.awaitHook("PreToolUse") }},
		{"idle", mockmodel.Answer, agentSetup{}, nil, "idle", nil},
		{"hang", mockmodel.Hang, agentSetup{}, short, "model_silent", nil},
		{"stall", mockmodel.Stall, agentSetup{}, short, "model_silent", nil},
		{"429", mockmodel.RateLimit, agentSetup{}, nil, "api_backoff", nil},
		{"401", mockmodel.Auth, agentSetup{headless: true}, nil, "auth_expired", nil},
		{"context", mockmodel.Context, agentSetup{}, nil, "context_exhausted", nil},
		{"dialog", mockmodel.Answer, agentSetup{offer: true}, nil, "waiting_other", nil},
		{"startup", mockmodel.Answer, agentSetup{fresh: true}, short, "startup_blocked", nil},
		{"exit", mockmodel.Answer, agentSetup{}, nil, "not_watched", exits},
	},
	"codex": {
		{"working", mockmodel.Tool, agentSetup{}, nil, "working", func(a *agent, _ *watcher) { a.awaitHook("PreToolUse") }},
		{"idle", mockmodel.Answer, agentSetup{}, nil, "idle", nil},
		{"hang", mockmodel.Hang, agentSetup{}, short, "model_silent", nil},
		{"429", mockmodel.RateLimit, agentSetup{}, nil, "rate_limited", nil},
		{"401", mockmodel.Auth, agentSetup{}, nil, "auth_expired", nil},
		{"context", mockmodel.Context, agentSetup{}, nil, "context_exhausted", nil},
		{"startup", mockmodel.Answer, agentSetup{untrustedHooks: true}, short, "startup_blocked", nil},
		{"exit", mockmodel.Answer, agentSetup{}, nil, "not_watched", exits},
	},
}

// TestMonitorDetects: what the monitor calls the state that a real agent is in, without any help of the agent's but its
// own files.
func TestMonitorDetects(t *testing.T) {
	for _, kind := range []string{"claude", "codex"} {
		for _, d := range detections[kind] {
			t.Run(kind+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				a, m := startWatched(t, kind, d.mode, d.setup, d.more, nil, "--answers", "off")
				if d.drive != nil {
					d.drive(a, m)
				}
				j := m.judges(d.class)
				t.Logf("%s: %s", j.Verdict.Rule, j.Verdict.Details)
				preview := m.outlive("monitor", "--home", a.agents(), "--dry-run")
				if !strings.Contains(preview, j.Verdict.Class) {
					t.Errorf("a dry run says\n%s", preview)
				}
				m.never(wrong[d.class]...)
			})
		}
	}
}

// wrong are classes by which an agent in this state would be harmed, or somebody woken in vain.
var wrong = map[string][]string{
	"working":     {"crashed", "waiting_permission", "waiting_question", "waiting_other", "startup_blocked", "model_silent", "monitor_blind"},
	"idle":        {"crashed", "waiting_permission", "waiting_question", "waiting_other", "startup_blocked", "model_silent"},
	"not_watched": {"crashed", "exited_unfinished", "waiting_permission", "waiting_other"},
	"api_backoff": {"crashed", "model_silent", "waiting_other"},
}

// enter types a line and makes sure that it was taken: a CLI that has just drawn its prompt may drop what comes first.
func (a *agent) enter(line string) {
	a.term.send(line)
	time.Sleep(300 * time.Millisecond) // what comes at once with a text is pasted with it, and not a key
	a.term.send("\r")
}

// again asks for one more turn.
func (a *agent) again() {
	a.t.Helper()
	turns := a.model.Turns()
	a.enter("Once more")
	for end := time.Now().Add(2 * patience); a.model.Turns() == turns; {
		if within(time.Second, func() bool { return a.model.Turns() > turns }) {
			return
		}
		if time.Now().After(end) {
			a.t.Fatalf("%s takes no prompt\n%s", a.kind, a.screen())
		}
		a.term.send("\r")
	}
}

// rounds is how often a time is measured.
const rounds = 5

// TestMonitorSeesDeath: the time from SIGKILL in the middle of a tool to the verdict.
func TestMonitorSeesDeath(t *testing.T) {
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var took []time.Duration
			for range rounds {
				a, m := startWatched(t, kind, mockmodel.Tool, agentSetup{}, nil, nil, "--answers", "off")
				a.awaitHook("PreToolUse")
				m.judges("working")
				killed := time.Now()
				a.signal(syscall.SIGKILL)
				j := m.judges("crashed")
				took = append(took, time.Since(killed))
				if j.Verdict.Confidence != "high" {
					t.Errorf("it is not sure: %+v", j.Verdict)
				}
				m.kill()
				a.stop()
			}
			promised(t, kind+", a crash is seen", time.Second, took)
		})
	}
}

// TestMonitorSeesWaiting: the time from a dialog on the screen to the verdict.
func TestMonitorSeesWaiting(t *testing.T) {
	for _, kind := range []string{"claude", "codex"} {
		for class, mode := range map[string]mockmodel.Mode{"waiting_permission": mockmodel.Permission, "waiting_question": mockmodel.Question} {
			t.Run(kind+"/"+class, func(t *testing.T) {
				t.Parallel()
				a, m := startWatched(t, kind, mode, agentSetup{}, nil, []string{}, "--answers", "off")
				key := "\r"
				if kind == "codex" && mode == mockmodel.Permission {
					key = "y"
				}
				var took []time.Duration
				for round := range rounds {
					if round > 0 {
						a.again()
					}
					shown := a.awaitDialog()
					j := m.judges(class)
					took = append(took, time.Since(shown))
					if j.Verdict.Confidence != "high" {
						t.Errorf("it is not sure: %+v", j.Verdict)
					}
					a.answer(key)
					m.judges("idle")
				}
				promised(t, kind+", "+class+" is seen", 3*time.Second, took)
			})
		}
	}
}

// awaitDialog waits until the agent stands before a human, and returns when that was.
func (a *agent) awaitDialog() time.Time {
	a.t.Helper()
	a.await("a dialog", func() bool {
		if a.kind == "codex" {
			return strings.Contains(a.term.lastTitle(), "Action Required")
		}
		status, _ := a.session()
		return status == "waiting"
	})
	return time.Now()
}
