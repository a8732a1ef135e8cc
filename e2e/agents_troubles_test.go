package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// once makes Claude Code give its model up after one more attempt instead of ten, which take minutes.
var once = []string{"CLAUDE_CODE_MAX_RETRIES=1"}

// fewRetries makes Codex give its model up after one more request instead of thirty, which take half a minute.
var fewRetries = []string{"-c", "model_providers.mock.request_max_retries=1", "-c", "model_providers.mock.stream_max_retries=0"}

// saying is a setup whose model has the CLI leave a heartbeat with a state, and then work for a minute.
func saying(state string) agentSetup {
	return agentSetup{script: mockmodel.Script{Command: slowCheck + " says " + state}}
}

// leavesBeat waits until the command has left its heartbeat: before that a failure is the CLI's or the command's, and not the
// monitor's.
func leavesBeat(a *agent, m *watcher) {
	a.await("its heartbeat", func() bool {
		_, err := os.Stat(filepath.Join(m.dir, "hb", agentName+".json"))
		return err == nil
	})
}

// unknownCLI is a declaration of a CLI whose own files nobody knows: its process, its output and its heartbeats are all there is.
var unknownCLI = declaration{"kind": "command", "expect": declaration{"stale": "4s"}}

// silentBeats runs a CLI behind our wrapper without a terminal, and its model leaves one heartbeat.
var silentBeats = agentSetup{headless: true, wrapped: true, script: mockmodel.Script{Command: slowCheck + " says working"}}

// committing is a setup whose model commits. What it does then, the mode says.
var committing = agentSetup{
	script: mockmodel.Script{Command: "git init --quiet . && git commit --allow-empty -m checked"},
	env:    []string{"GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@shop", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@shop"},
}

// endless is a setup whose model runs the same command again and again.
var endless = agentSetup{headless: true, noHooks: true, script: mockmodel.Script{Command: quickCheck, Rounds: 1000}}

// byManifest is an agent that is done when its manifest says so.
var byManifest = declaration{"expect": declaration{"done": declaration{"manifest": "complete"}}}

// byProcess is an agent of which nothing but its process, and its manifest, is looked at.
var byProcess = declaration{"signals": []string{"process"}, "expect": byManifest["expect"]}

// byOutput is an agent of which nothing but what it writes is looked at: not even whether it lives.
var byOutput = declaration{"signals": []string{"output"}, "expect": declaration{"stale": "4s"}}

// halts stops every process of the agent in the middle of a tool.
func halts(a *agent, m *watcher) {
	m.awaitTool()
	for pid := range a.running() {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			a.t.Fatal(err)
		}
	}
}

// pauses has the agent left alone.
func pauses(a *agent, m *watcher) {
	m.judges("idle")
	m.outlive("agent", "pause", agentName, "--home", m.dir)
}

// repeats waits until the agent has done the same often enough: on a busy machine that takes its time.
func repeats(a *agent, _ *watcher) {
	a.await("five rounds", func() bool { return a.model.Turns() > 5 })
}

// committed makes the model silent once it was asked for the commit.
func committed(a *agent, _ *watcher) {
	a.awaitRequest()
	a.model.SetMode(mockmodel.Hang)
	a.await("the commit", func() bool { return a.model.Turns() > 1 })
}

// manifest writes the manifest of the project of an agent at work.
func manifest(text string) func(*agent, *watcher) {
	return func(a *agent, m *watcher) {
		a.awaitRequest()
		a.write(filepath.Join(a.project, ".agents", "manifest.yaml"), text)
	}
}

// deadKey is a manifest with a failure that no restart cures.
const deadKey = `phases: {}
failures:
  - {command: execute, phase: 2, error_category: integration_auth, retry_count: 0, max_retries: 0, resolution: pending, details: the key has expired}
`

// orphans ends the wrapper around the agent, and nothing else, once that has nothing to write: its pipe is broken then.
func orphans(a *agent, m *watcher) {
	m.judges("heartbeat_lost")
	kill(a.t, a.pid())
}

// killedWithWrapper kills the agent once the wrapper around it, which would report that, is dead.
func killedWithWrapper(a *agent, m *watcher) {
	m.judges("working") // it draws its screen
	running := a.running()
	kill(a.t, a.pid())
	for pid := range running {
		_ = syscall.Kill(pid, syscall.SIGKILL) // the end of its terminal may have ended it
	}
	a.ended()
}

// isContinued kills the CLI with the command that it runs in the background, and goes on with the session at a terminal, as a person
// does who types nothing more: the CLI notes in the session that the task has ended, and does not ask its model.
func isContinued(a *agent, _ *watcher) {
	a.awaitStatus("shell", "")
	a.awaitTranscript("system/turn_duration") // killed before, its session has no end of the turn
	a.model.SetMode(mockmodel.Answer)
	for pid := range a.running() {
		kill(a.t, pid)
	}
	a.kills("check.sh")
	a.ended()
	turns, before := a.model.Turns(), a.cmd
	a.cmd = exec.Command(before.Path, "--continue")
	a.cmd.Dir, a.cmd.Env = before.Dir, before.Env
	a.term = startTerminal(a.t, a.cmd, nil)
	a.done = a.term.exited
	a.await("its note of the task", func() bool {
		return slices.ContainsFunc(a.transcripts(), func(name string) bool {
			text, _ := os.ReadFile(name)
			return strings.Contains(string(text), "before the previous session ended")
		})
	})
	a.t.Cleanup(func() {
		if n := a.model.Turns(); n != turns {
			a.t.Errorf("%d turns, %d before: its model was asked", n, turns)
		}
	})
}

// troubled are states in which both CLIs can be brought in the same way.
var troubled = []detection{
	{"unobserved", mockmodel.Hang, agentSetup{}, byProcess, "unobserved", nil},
	{"paused", mockmodel.Answer, agentSetup{}, nil, "paused", pauses},
	{"says-working", mockmodel.Tool, saying("working"), nil, "healthy", leavesBeat},
	{"says-stuck", mockmodel.Tool, saying("stuck"), nil, "waiting_other", leavesBeat},
	{"says-waiting", mockmodel.Tool, saying("waiting"), nil, "waiting_question", leavesBeat},
	{"says-done", mockmodel.Tool, saying("done"), nil, "done", leavesBeat},
	{"silent-beats", mockmodel.Tool, silentBeats, unknownCLI, "heartbeat_lost", nil},
	{"orphan", mockmodel.Tool, silentBeats, unknownCLI, "orphaned", orphans},
	{"stopped", mockmodel.Tool, agentSetup{}, nil, "stopped", halts},
	{"credit", mockmodel.Credit, agentSetup{}, nil, "credit_exhausted", nil},
	{"400", mockmodel.Invalid, agentSetup{}, nil, "execution_error", nil},
	{"tool", mockmodel.Tool, agentSetup{}, declaration{"expect": declaration{"tool": "3s"}}, "tool_hung", nil},
	{"loop", mockmodel.Loop, endless, nil, "loop", repeats},
	{"no-progress", mockmodel.Tool, committing, declaration{"expect": declaration{"progress": "3s"}}, "no_progress", committed},
	{"wrapped-unfinished", mockmodel.Answer, agentSetup{headless: true, wrapped: true}, byManifest, "exited_unfinished", nil},
	{"dead-key", mockmodel.Hang, agentSetup{}, byManifest, "human_required", manifest(deadKey)},
	{"output-only", mockmodel.Tool, agentSetup{wrapped: true}, byOutput, "no_evidence", killedWithWrapper},
	{"broken-manifest", mockmodel.Hang, agentSetup{}, byProcess, "manifest", manifest("phases: [")},
}

// troubles are those that only one of them has, or that it shows in its own way.
var troubles = map[string][]detection{
	"claude": {
		{"starting", mockmodel.Answer, agentSetup{fresh: true}, nil, "starting", nil},
		{"429-ended", mockmodel.RateLimit, agentSetup{env: once}, nil, "rate_limited", nil},
		{"529-ended", mockmodel.Overload, agentSetup{env: once}, nil, "api_failed", nil},
		{"task-before", mockmodel.Background, agentSetup{}, declaration{"expect": declaration{"task": "2s"}}, "background_task_dead", isContinued},
	},
	"codex": {
		{"starting", mockmodel.Answer, agentSetup{untrustedHooks: true}, nil, "starting", nil},
		{"529-ended", mockmodel.Overload, agentSetup{args: fewRetries}, nil, "api_failed", nil},
	},
}

// TestMonitorDetectsTroubles: what the monitor calls the rarer states of a real agent, with as little shortened as a test can
// wait for.
func TestMonitorDetectsTroubles(t *testing.T) {
	needFull(t, "it brings the CLIs into the rarer states, minutes of two cores; the door has those of TestMonitorDetects")
	t.Parallel()
	for _, kind := range kinds {
		for _, d := range slices.Concat(troubled, troubles[kind]) {
			t.Run(kind+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				d.isSeen(t, kind)
			})
		}
	}
}
