package e2e

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// agentScenario brings a real agent CLI into one state and checks that it shows it where `outlive monitor` looks.
type agentScenario struct {
	name  string
	mode  mockmodel.Mode
	setup agentSetup
	drive func(a *agent)
}

var claudeScenarios = []agentScenario{
	{"answer", mockmodel.Answer, agentSetup{}, func(a *agent) {
		a.turnEnds()
		a.hold(2 * time.Second)
		a.signal(syscall.SIGTERM)
		if code := a.ended().ExitCode(); code != 143 {
			a.t.Errorf("exit status after SIGTERM: %d, want 143", code)
		}
		a.await("the session file to be removed", func() bool { return len(a.sessionFiles()) == 0 })
	}},
	{"ask", mockmodel.Ask, agentSetup{}, func(a *agent) {
		a.turnEnds()
		a.hold(65 * time.Second) // the idle_prompt notification comes after 60 s
	}},
	{"tool", mockmodel.Tool, agentSetup{script: mockmodel.Script{Command: shortCheck}}, func(a *agent) {
		a.awaitHook("PreToolUse")
		a.awaitStatus("busy", "")
		a.turnEnds()
	}},
	{"tool-killed", mockmodel.Tool, agentSetup{}, func(a *agent) {
		a.awaitHook("PreToolUse")
		a.hold(2 * time.Second)
		a.signal(syscall.SIGKILL)
		a.ended()
		a.hold(time.Second)
		if len(a.sessionFiles()) == 0 {
			a.t.Error("the session file is gone after SIGKILL")
		}
		if a.transcriptHas("system/turn_duration") {
			a.t.Error("the killed turn looks ended")
		}
	}},
	{"background", mockmodel.Background, agentSetup{}, func(a *agent) {
		a.awaitTranscript("system/turn_duration")
		a.awaitStatus("shell", "")
		a.hold(2 * time.Second)
	}},
	{"background-failed", mockmodel.Background, agentSetup{}, func(a *agent) {
		a.awaitTranscript("system/turn_duration")
		a.awaitStatus("shell", "")
		a.model.SetMode(mockmodel.Answer)
		a.kills("check.sh")
		a.awaitTranscript("queue-operation")
		a.turnEnds()
	}},
	{"permission", mockmodel.Permission, agentSetup{}, func(a *agent) {
		a.awaitStatus("waiting", "permission prompt")
		if tool := a.awaitHook("PermissionRequest")["tool_name"]; tool != "Bash" {
			a.t.Errorf("the permission hook names tool %v", tool)
		}
		a.awaitHook("Notification")
		a.awaitRecord(a.says(a.cmd.Path, "agents", "--json"), map[string]any{"status": "waiting", "waitingFor": "permission prompt"})
		a.hold(8 * time.Second)
		a.answer("\r") // "Yes" is the first choice
		a.turnEnds()
	}},
	{"question", mockmodel.Question, agentSetup{}, func(a *agent) {
		a.awaitStatus("waiting", "input needed")
		a.hold(8 * time.Second)
		a.answer("\r")
		a.turnEnds()
	}},
	{"loop", mockmodel.Loop, agentSetup{script: mockmodel.Script{Command: quickCheck, Rounds: 6}}, (*agent).turnEnds},
	{"hang", mockmodel.Hang, agentSetup{}, func(a *agent) {
		a.awaitRequest()
		a.awaitStatus("busy", "")
		a.hold(10 * time.Second)
	}},
	{"stall", mockmodel.Stall, agentSetup{}, func(a *agent) {
		a.awaitRequest()
		a.awaitStatus("busy", "")
		a.hold(10 * time.Second)
	}},
	{"429", mockmodel.RateLimit, agentSetup{}, (*agent).retries},
	{"529", mockmodel.Overload, agentSetup{}, (*agent).retries},
	{"401", mockmodel.Auth, agentSetup{}, (*agent).retries},
	{"context", mockmodel.Context, agentSetup{}, func(a *agent) {
		a.awaitTranscript("assistant") // the error, in the model's place
		a.awaitStatus("idle", "")
		a.hold(3 * time.Second)
	}},
	{"offer", mockmodel.Answer, agentSetup{offer: true}, func(a *agent) {
		a.awaitStatus("waiting", "dialog open")
		a.hold(3 * time.Second)
	}},
	{"startup-trust", mockmodel.Answer, agentSetup{fresh: true}, (*agent).neverStarts},
	{"print-answer", mockmodel.Answer, agentSetup{headless: true}, (*agent).succeeds},
	{"print-tool", mockmodel.Tool, agentSetup{headless: true, script: mockmodel.Script{Command: shortCheck}}, (*agent).succeeds},
	{"print-permission", mockmodel.Permission, agentSetup{headless: true}, (*agent).succeeds},
	{"print-hang", mockmodel.Hang, agentSetup{headless: true}, func(a *agent) {
		a.awaitRequest()
		a.hold(10 * time.Second)
		a.signal(syscall.SIGTERM)
		if code := a.ended().ExitCode(); code != 143 {
			a.t.Errorf("exit status after SIGTERM: %d, want 143", code)
		}
	}},
	{"print-529", mockmodel.Overload, agentSetup{headless: true}, (*agent).retriesInPrint},
	{"print-401", mockmodel.Auth, agentSetup{headless: true}, (*agent).retriesInPrint},
	{"print-context", mockmodel.Context, agentSetup{headless: true}, (*agent).fails},
}

var codexScenarios = []agentScenario{
	{"answer", mockmodel.Answer, agentSetup{}, func(a *agent) {
		a.turnEnds()
		a.hold(2 * time.Second)
	}},
	{"ask", mockmodel.Ask, agentSetup{}, (*agent).turnEnds},
	{"tool", mockmodel.Tool, agentSetup{script: mockmodel.Script{Command: shortCheck}}, func(a *agent) {
		a.awaitHook("PreToolUse")
		a.turnEnds()
	}},
	{"tool-killed", mockmodel.Tool, agentSetup{}, (*agent).codexKilled},
	{"permission", mockmodel.Permission, agentSetup{}, (*agent).codexApproved},
	{"question", mockmodel.Question, agentSetup{}, func(a *agent) {
		a.awaitTitle("Action Required")
		a.awaitTranscript("response_item/function_call")
		a.hold(8 * time.Second)
		a.answer("\r")
		a.turnEnds()
	}},
	{"loop", mockmodel.Loop, agentSetup{script: mockmodel.Script{Command: quickCheck, Rounds: 6}}, (*agent).turnEnds},
	{"hang", mockmodel.Hang, agentSetup{}, func(a *agent) {
		a.awaitRequest()
		a.awaitTranscript("event_msg/task_started")
		a.hold(10 * time.Second)
	}},
	{"stall", mockmodel.Stall, agentSetup{}, func(a *agent) {
		a.awaitRequest()
		a.awaitTranscript("event_msg/task_started")
		a.hold(10 * time.Second)
	}},
	{"429", mockmodel.RateLimit, agentSetup{}, (*agent).turnEnds},
	{"529", mockmodel.Overload, agentSetup{}, (*agent).turnEnds},
	{"401", mockmodel.Auth, agentSetup{}, (*agent).turnEnds},
	{"context", mockmodel.Context, agentSetup{}, (*agent).turnEnds},
	{"classic-tool", mockmodel.Tool, agentSetup{model: codexClassic, script: mockmodel.Script{Command: shortCheck}}, (*agent).turnEnds},
	{"classic-tool-killed", mockmodel.Tool, agentSetup{model: codexClassic}, (*agent).codexKilled},
	{"classic-permission", mockmodel.Permission, agentSetup{model: codexClassic}, (*agent).codexApproved},
	{"classic-loop", mockmodel.Loop, agentSetup{model: codexClassic, script: mockmodel.Script{Command: quickCheck, Rounds: 6}}, (*agent).turnEnds},
	{"untrusted", mockmodel.Answer, agentSetup{fresh: true, noHooks: true}, (*agent).turnEnds}, // no dialog
	{"startup-model", mockmodel.Answer, agentSetup{model: codexClassic, noHooks: true, newModel: true}, (*agent).neverStarts},
	{"startup-hooks", mockmodel.Answer, agentSetup{untrustedHooks: true}, (*agent).neverStarts},
	{"exec-answer", mockmodel.Answer, agentSetup{headless: true}, (*agent).succeeds},
	{"exec-tool", mockmodel.Tool, agentSetup{headless: true, script: mockmodel.Script{Command: shortCheck}}, (*agent).succeeds},
	{"exec-permission", mockmodel.Permission, agentSetup{headless: true}, (*agent).succeeds},
	{"exec-hang", mockmodel.Hang, agentSetup{headless: true}, func(a *agent) {
		a.awaitRequest()
		a.hold(10 * time.Second)
	}},
	{"exec-429", mockmodel.RateLimit, agentSetup{headless: true}, (*agent).fails},
	{"exec-529", mockmodel.Overload, agentSetup{headless: true}, func(a *agent) {
		a.await("a retry on stdout", func() bool { return strings.Contains(a.stdout(), "Reconnecting") })
		a.hold(40 * time.Second)
	}},
	{"exec-401", mockmodel.Auth, agentSetup{headless: true}, (*agent).fails},
}

// TestAgentSigns holds the recordings against the CLIs that are installed now: what the monitor reads must be there.
// With E2E_RECORD=<dir> it writes the recordings anew, into <dir>/<kind>/<scenario>.
func TestAgentSigns(t *testing.T) {
	needFull(t, "it holds all recordings against the CLIs, minutes of two cores")
	t.Parallel()
	for kind, scenarios := range map[string][]agentScenario{"claude": claudeScenarios, "codex": codexScenarios} {
		for i, sc := range scenarios {
			if !oneOfThree(i) && recordings() == "" {
				continue
			}
			t.Run(kind+"/"+sc.name, func(t *testing.T) {
				t.Parallel()
				a := startAgent(t, kind, sc.mode, sc.setup)
				sc.drive(a)
				a.stop()
				a.save(sc.name)
			})
		}
	}
}

// hold keeps an agent in its state for a recording. A plain test has seen enough.
func (a *agent) hold(d time.Duration) {
	if recordings() == "" {
		return
	}
	select {
	case <-a.done:
	case <-time.After(d):
	}
}

// session is what Claude's state file says now.
func (a *agent) session() (status, waitingFor string) {
	for _, name := range a.sessionFiles() {
		data, _ := os.ReadFile(name)
		var s struct {
			Status     string `json:"status"`
			WaitingFor string `json:"waitingFor"`
		}
		if json.Unmarshal(data, &s) == nil {
			return s.Status, s.WaitingFor
		}
	}
	return "", ""
}

func (a *agent) awaitStatus(status, waitingFor string) {
	a.t.Helper()
	a.await("session status "+status+" "+waitingFor, func() bool {
		s, w := a.session()
		return s == status && (waitingFor == "" || w == waitingFor)
	})
}

// awaitHook waits until a hook command got the event and returns its payload.
func (a *agent) awaitHook(event string) map[string]any {
	a.t.Helper()
	return a.awaitRecord(a.w.file("hooks.jsonl"), map[string]any{"hook_event_name": event})
}

func (a *agent) awaitTranscript(kind string) {
	a.t.Helper()
	a.await("transcript record "+kind, func() bool { return a.transcriptHas(kind) })
}

func (a *agent) awaitTitle(part string) {
	a.t.Helper()
	a.await("title "+part, func() bool { return strings.Contains(a.term.lastTitle(), part) })
}

func (a *agent) awaitRequest() {
	a.t.Helper()
	a.await("a request to the model", func() bool { return a.model.Turns() > 0 })
}

// transcriptHas says whether a transcript has a whole record of the kind.
func (a *agent) transcriptHas(kind string) bool { return a.transcriptCount(kind) > 0 }

// transcriptCount counts the whole records of the kind in the transcripts.
func (a *agent) transcriptCount(kind string) int {
	n := 0
	for _, name := range a.transcripts() {
		data, _ := os.ReadFile(name)
		for line := range strings.Lines(string(data)) {
			if strings.HasSuffix(line, "\n") && lineKind(line) == kind {
				n++
			}
		}
	}
	return n
}

// turnEnds waits until the transcript says that the turn is over.
func (a *agent) turnEnds() {
	a.t.Helper()
	if a.kind == "codex" {
		a.awaitTranscript("event_msg/task_complete")
		a.hold(time.Second)
		return
	}
	a.awaitTranscript("system/turn_duration")
	a.awaitStatus("idle", "")
	a.hold(time.Second)
}

// kills ends what the agent runs, by a part of its command line.
func (a *agent) kills(part string) {
	a.t.Helper()
	for pid := range a.w.processes(part) {
		if pid != a.pid() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// retries: Claude asks again and again, is busy all the time, and its transcript shows nothing but the requests.
func (a *agent) retries() {
	a.t.Helper()
	a.await("a third request", func() bool { return a.model.Turns() >= 3 })
	a.awaitStatus("busy", "")
	a.hold(15 * time.Second)
}

func (a *agent) retriesInPrint() {
	a.t.Helper()
	a.await("a retry on stdout", func() bool { return strings.Contains(a.stdout(), `"api_retry"`) })
	a.hold(15 * time.Second)
}

// answer presses a key until the dialog is gone: one that has just appeared takes none, lest somebody who is typing
// answers it unread.
func (a *agent) answer(key string) {
	a.t.Helper()
	a.await("the end of the dialog", func() bool {
		open := strings.Contains(a.term.lastTitle(), "Action Required")
		if a.kind == "claude" {
			status, _ := a.session()
			open = status == "waiting"
		}
		if !open {
			return true
		}
		a.term.send(key)
		time.Sleep(time.Second)
		return false
	})
}

func (a *agent) codexKilled() {
	a.awaitHook("PreToolUse")
	a.hold(2 * time.Second)
	a.signal(syscall.SIGKILL)
	a.await("the end of every process", func() bool { return len(a.w.processes("codex")) == 0 })
	a.hold(time.Second)
	if a.transcriptHas("event_msg/task_complete") {
		a.t.Error("the killed turn looks ended")
	}
}

func (a *agent) codexApproved() {
	a.awaitHook("PermissionRequest")
	a.awaitTitle("Action Required")
	a.hold(8 * time.Second)
	a.answer("y")
	a.turnEnds()
}

// neverStarts: a dialog stands before the first turn, so that no session artefact and no request exists.
func (a *agent) neverStarts() {
	a.t.Helper()
	a.await("a dialog", func() bool { return len(a.term.text()) > 300 })
	time.Sleep(5 * time.Second) // nothing announces that nothing will come
	if n := a.model.Turns(); n != 0 {
		a.t.Errorf("%d turns behind a startup dialog\n%s", n, a.screen())
	}
	if names := a.transcripts(); len(names) != 0 {
		a.t.Errorf("transcripts behind a startup dialog: %v", names)
	}
}

func (a *agent) stdout() string {
	data, _ := os.ReadFile(a.w.path(a.stdoutName))
	return string(data)
}

func (a *agent) succeeds() {
	a.t.Helper()
	if state := a.ended(); !state.Success() {
		a.t.Errorf("ended with %v\n%s", state, a.screen())
	}
}

func (a *agent) fails() {
	a.t.Helper()
	if state := a.ended(); state.Success() {
		a.t.Errorf("ended with %v\n%s", state, a.screen())
	}
}
