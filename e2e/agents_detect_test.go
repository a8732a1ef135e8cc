package e2e

import (
	"path/filepath"
	"slices"
	"strings"
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

// done is an agent that is done when it ends well.
var done = declaration{"expect": declaration{"done": declaration{"exit": 0}}}

// awaitTool waits until the agent is in the middle of a tool, its transcript says so, and the monitor knows. The CLIs
// write their transcripts late, Claude Code a new session's by a second: killed before, there is nothing to go on with.
func (m *watcher) awaitTool() {
	m.t.Helper()
	m.a.awaitHook("PreToolUse")
	m.a.awaitTranscript(map[string]string{"claude": "assistant", "codex": "response_item/custom_tool_call"}[m.a.kind])
	m.judges("working")
}

// killed9 kills the agent below its wrapper.
func killed9(a *agent, m *watcher) {
	m.awaitTool()
	for pid := range a.w.processes(filepath.Join("node_modules", ".bin", a.kind)) {
		if pid != a.pid() {
			kill(a.t, pid)
		}
	}
	if code := a.ended().ExitCode(); code != 137 {
		a.t.Errorf("the wrapper's exit status is %d, want 137", code)
	}
}

// exits lets a human end the CLI at its prompt, as people do: not in the very second in which it has answered.
func exits(a *agent, m *watcher) {
	a.turnEnds()
	m.judges("idle")
	time.Sleep(3*time.Second + waits(3*time.Second)) // it must be idle for 3 s to be at rest, and that must be seen
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
		{"dialog", mockmodel.Answer, agentSetup{offer: true}, nil, "idle", nil}, // an offer after a finished turn waits for nobody
		{"startup", mockmodel.Answer, agentSetup{fresh: true}, short, "startup_blocked", nil},
		{"exit", mockmodel.Answer, agentSetup{}, nil, "not_watched", exits},
		{"wrapped-idle", mockmodel.Answer, agentSetup{wrapped: true}, nil, "idle", nil},
		{"wrapped-exit", mockmodel.Answer, agentSetup{wrapped: true}, nil, "not_watched", exits},
		{"wrapped-401", mockmodel.Auth, agentSetup{headless: true, wrapped: true}, nil, "auth_expired", nil},
		{"wrapped-done", mockmodel.Answer, agentSetup{headless: true, wrapped: true}, done, "done", nil},
		{"wrapped-undeclared", mockmodel.Answer, agentSetup{headless: true, wrapped: true}, nil, "done", nil}, // it works on its prompt and exits 0
		{"wrapped-killed", mockmodel.Tool, agentSetup{wrapped: true}, nil, "crashed", killed9},
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
		{"wrapped-idle", mockmodel.Answer, agentSetup{wrapped: true}, nil, "idle", nil},
		{"wrapped-exit", mockmodel.Answer, agentSetup{wrapped: true}, nil, "not_watched", exits},
		{"wrapped-permission", mockmodel.Permission, agentSetup{noHooks: true, wrapped: true}, nil, "waiting_permission", nil}, // by its title
		{"wrapped-done", mockmodel.Answer, agentSetup{headless: true, wrapped: true}, done, "done", nil},
		{"wrapped-undeclared", mockmodel.Answer, agentSetup{headless: true, wrapped: true}, nil, "done", nil}, // it works on its prompt and exits 0
		{"wrapped-killed", mockmodel.Tool, agentSetup{wrapped: true}, nil, "crashed", killed9},
	},
}

// twins are the states that another one stands for at the door: with the wrapper or without it, of the other CLI, by a model that ends
// in the middle of an answer instead of before it.
var twins = []string{
	"claude/idle", "claude/401", "claude/stall", "claude/wrapped-exit", "claude/wrapped-undeclared",
	"codex/exit", "codex/wrapped-idle", "codex/wrapped-done",
}

// TestMonitorDetects: what the monitor calls the state that a real agent is in, without any help of the agent's but its
// own files.
func TestMonitorDetects(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"claude", "codex"} {
		for _, d := range detections[kind] {
			t.Run(kind+"/"+d.name, func(t *testing.T) {
				onePerKind(t, !slices.Contains(twins, kind+"/"+d.name))
				t.Parallel()
				d.isSeen(t, kind)
			})
		}
	}
}

// isSeen brings an agent into the state and waits until the monitor calls it so, and a dry run beside it does, too.
func (d detection) isSeen(t *testing.T, kind string) {
	a, m := startWatched(t, kind, d.mode, d.setup, d.more, nil, "--answers", "off")
	if d.drive != nil {
		d.drive(a, m)
	}
	j := m.judges(d.class)
	t.Logf("%s: %s", j.Verdict.Rule, j.Verdict.Details)
	a.await("a dry run that says so, too", func() bool {
		return strings.Contains(m.outlive("monitor", "--home", a.agents(), "--dry-run"), j.Verdict.Class)
	})
	m.never(wrong[d.class]...)
}

// wrong are classes by which an agent in this state would be harmed, or somebody woken in vain.
var wrong = map[string][]string{
	"working":     {"crashed", "waiting_permission", "waiting_question", "waiting_other", "startup_blocked", "model_silent", "monitor_blind"},
	"idle":        {"crashed", "waiting_permission", "waiting_question", "waiting_other", "startup_blocked", "model_silent"},
	"not_watched": {"crashed", "exited_unfinished", "waiting_permission", "waiting_other"},
	"no_evidence": {"crashed", "exited_unfinished", "heartbeat_lost"},
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
	for end := time.Now().Add(longPatience); a.model.Turns() == turns; {
		if within(time.Second, func() bool { return a.model.Turns() > turns }) {
			return
		}
		if time.Now().After(end) {
			a.t.Fatalf("%s takes no prompt\n%s", a.kind, a.screen())
		}
		a.term.send("\r")
	}
}

// rounds is how often a time is measured. The door does not judge it: once shows what is seen.
func rounds() int {
	if full() {
		return 5
	}
	return 1
}

// TestMonitorSeesDeath: the time from SIGKILL in the middle of a tool to the verdict.
func TestMonitorSeesDeath(t *testing.T) {
	needFull(t, "it judges how soon a death is seen")
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var took []time.Duration
			for range rounds() {
				a, m := startWatched(t, kind, mockmodel.Tool, agentSetup{}, nil, nil, "--answers", "off")
				m.awaitTool()
				running := a.running()
				killed := time.Now()
				for pid := range running { // Codex are two, and the second lives a second longer than the first
					kill(t, pid)
				}
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

// TestMonitorSeesWaiting: the time from a dialog on the screen to the verdict. Of Claude Code its state file shows it
// without anybody's help, of Codex a permission is shown by the hook or, to the wrapper, by its terminal's title, and a
// question by its rollout.
func TestMonitorSeesWaiting(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, kind string
		mode       mockmodel.Mode
		class, key string
		setup      agentSetup
		hooks      []string
	}{
		{"claude/permission", "claude", mockmodel.Permission, "waiting_permission", "\r", agentSetup{}, nil},
		{"claude/question", "claude", mockmodel.Question, "waiting_question", "\r", agentSetup{}, nil},
		{"codex/permission", "codex", mockmodel.Permission, "waiting_permission", "y", agentSetup{}, []string{}},
		{"codex/title", "codex", mockmodel.Permission, "waiting_permission", "y", agentSetup{wrapped: true}, nil},
		{"codex/question", "codex", mockmodel.Question, "waiting_question", "\r", agentSetup{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, m := startWatched(t, tc.kind, tc.mode, tc.setup, nil, tc.hooks, "--answers", "off")
			var took []time.Duration
			for round := range rounds() {
				if round > 0 {
					a.again()
				}
				shown := a.awaitDialog()
				j := m.judges(tc.class)
				took = append(took, time.Since(shown))
				if j.Verdict.Confidence != "high" {
					t.Errorf("it is not sure: %+v", j.Verdict)
				}
				a.answer(tc.key)
				m.judges("idle")
			}
			t.Logf("in order: %v", took)
			promised(t, tc.name+" is seen", 3*time.Second, took)
		})
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
