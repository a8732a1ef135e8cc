package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/faketelegram"
	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// resume is the command that goes on with an agent's session without a terminal.
func resume(kind string) []string { return agentCLIs[kind].resume }

// preamble is in every text that an agent is resumed with.
const preamble = "Go on with the task where it was left"

// resumed waits until the model was asked to go on with the first conversation.
func (a *agent) resumed() {
	a.t.Helper()
	a.await("the conversation to go on", func() bool {
		for _, r := range a.model.Requests() {
			if strings.Contains(string(r.Body), preamble) && strings.Contains(string(r.Body), agentPrompt) {
				return true
			}
		}
		return false
	})
}

// running are the processes of the agent's CLI, also of those that the monitor has started.
func (a *agent) running() map[int]string {
	found := map[int]string{}
	for pid, line := range a.w.processes(a.kind) {
		words := strings.Fields(line)
		for _, word := range words[:min(2, len(words))] { // the second behind node
			if filepath.Base(word) == a.kind {
				found[pid] = line
			}
		}
	}
	return found
}

// TestMonitorResumes: a killed agent goes on with the very session it had, under our wrapper, without anybody being told.
func TestMonitorResumes(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{"start": declaration{"resume": resume(kind)}, "expect": done["expect"]}
			a, m := startWatched(t, kind, mockmodel.Tool, agentSetup{}, d, nil)
			m.awaitTool()
			a.model.SetMode(mockmodel.Answer)
			killed := time.Now()
			a.signal(9)
			m.judges("crashed")
			a.resumed()
			t.Logf("the model was asked again %v after the kill", time.Since(killed).Round(time.Millisecond))
			m.judges("done")
			m.tellsNobody()
			m.await("the journal's entry", func() bool { return strings.Contains(m.journal(), "resume") })
			if n := strings.Count(m.journal(), "- **Action:**"); n != 1 {
				t.Errorf("%d entries of one recovery:\n%s", n, m.journal())
			}
		})
	}
}

// TestMonitorEndsAHang: an agent whose model has gone silent is ended, with everything it had started, and resumed.
func TestMonitorEndsAHang(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{
				"start":  declaration{"resume": resume(kind)},
				"expect": declaration{"model_silent": "4s", "attended": "1s", "done": declaration{"exit": 0}},
				"policy": declaration{"model_silent": []string{"resume"}},
				"budget": declaration{"kill_grace": "2s"},
			}
			a, m := startWatched(t, kind, mockmodel.Hang, agentSetup{}, d, nil)
			a.awaitRequest()
			a.model.SetMode(mockmodel.Answer) // what hangs already goes on hanging
			m.judges("model_silent")
			a.resumed()
			if state := a.ended(); state.Success() {
				t.Errorf("the agent that hung has ended with %v", state)
			}
			m.judges("done")
			m.tellsNobody()
			if left := a.running(); len(left) > 0 {
				t.Errorf("beside the one that is resumed: %v", left)
			}
		})
	}
}

// TestMonitorInterrupts: whatever an interrupt does to the CLI, its session goes on soon, and nobody is told.
func TestMonitorInterrupts(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{
				"start":  declaration{"resume": resume(kind)},
				"expect": declaration{"model_silent": "4s", "attended": "1s", "done": declaration{"exit": 0}},
				"policy": declaration{"model_silent": []string{"interrupt", "resume"}},
			}
			a, m := startWatched(t, kind, mockmodel.Hang, agentSetup{}, d, nil)
			a.awaitRequest()
			a.model.SetMode(mockmodel.Answer)
			m.judges("model_silent")
			a.resumed()
			m.judges("done")
			m.tellsNobody()
		})
	}
}

// TestMonitorInterruptsNoSession: an agent that nobody could go on with, because no command is declared, keeps its
// session: a human is told instead.
func TestMonitorInterruptsNoSession(t *testing.T) {
	needFull(t, "two more CLIs for one command less; the door has TestMonitorInterrupts")
	t.Parallel()
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{"expect": declaration{"model_silent": "4s"}, "policy": declaration{"model_silent": []string{"interrupt", "resume"}}}
			a, m := startWatched(t, kind, mockmodel.Hang, agentSetup{}, d, nil)
			a.awaitRequest()
			m.judges("model_silent")
			m.tells(1, says("shop gets no answer from its model"))
			a.lives(t, 0)
			m.never("crashed", "exited_unfinished")
		})
	}
}

// TestMonitorTellsWhenTheBudgetIsSpent: then, and only then, a human is told, in one message, which is changed when the
// agent works again.
func TestMonitorTellsWhenTheBudgetIsSpent(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{
				"start":  declaration{"resume": resume(kind)},
				"budget": declaration{"per_class": declaration{"crashed": "0/1h"}},
			}
			a, m := startWatched(t, kind, mockmodel.Tool, agentSetup{}, d, nil)
			m.awaitTool()
			a.signal(9)
			told := m.tells(1, says("🔴", "shop has crashed", "0 of 0 starts are used"))
			for _, label := range []string{"Ack", "Resume", "Snooze", "Details"} {
				button(t, told, label)
			}
			if n := a.model.Turns(); n != 1 {
				t.Errorf("%d turns: it was resumed nevertheless", n)
			}
			// The tool that the resumed agent runs is the sign that it works again.
			if answer := m.press(told, "Resume"); answer != "It is resumed" {
				t.Errorf("the press was answered with %q", answer)
			}
			a.resumed()
			m.tells(1, says("🟢", "Status: resolved", "after 1 restart", "resume by User 42"))
			m.tells(2, says("🟢 shop works again"))
			if n := len(m.phone.Messages()); n != 2 {
				t.Errorf("%d messages: %+v", n, m.phone.Messages())
			}
			if answer := m.press(told, "Resume"); !strings.Contains(answer, "already") {
				t.Errorf("the late press was answered with %q", answer)
			}
		})
	}
}

// button returns a message's button whose label begins so.
func button(t *testing.T, msg faketelegram.Message, label string) faketelegram.Button {
	t.Helper()
	for _, b := range msg.Buttons {
		if strings.HasPrefix(b.Label, label) {
			return b
		}
	}
	t.Fatalf("no button %s: %+v", label, msg)
	return faketelegram.Button{}
}

// TestMonitorAsksBeforeItEnds: a question in a terminal is put to a human, and its session is left alone meanwhile, although
// nothing but resuming it is declared.
func TestMonitorAsksBeforeItEnds(t *testing.T) {
	needFull(t, "it judges that nothing is done within some time")
	t.Parallel()
	for _, kind := range []string{"claude", "codex"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{"start": declaration{"resume": resume(kind)}}
			a, m := startWatched(t, kind, mockmodel.Question, agentSetup{}, d, nil)
			m.tells(1, says("shop waits for an answer", "15 minutes"))
			a.lives(t, waits(10*time.Second))
			m.never("crashed", "exited_unfinished")
			m.await("explain to say what cannot be done", func() bool {
				return strings.Contains(m.outlive("agent", "explain", "shop", "--home", m.dir), "was left out: no nudge command is declared")
			})
		})
	}
}

// TestMonitorStartsNoDeadLogin: a run that ends with a dead login is not taken for a crash: a human is told, and nothing is
// started.
func TestMonitorStartsNoDeadLogin(t *testing.T) {
	needFull(t, "it judges that nothing is started within some time")
	t.Parallel()
	d := declaration{"start": declaration{"resume": resume("claude"), "cmd": []string{"claude", "-p", "{text}"}}}
	a, m := startWatched(t, "claude", mockmodel.Auth, agentSetup{headless: true}, d, nil)
	m.tells(1, says("shop is logged out"))
	a.signal(9) // it may try for minutes
	<-a.done
	m.await("its end to be seen", func() bool {
		seen := m.outlive("agent", "list", "--json", "--home", m.dir)
		return strings.Contains(seen, `"process": "dead"`) && strings.Contains(seen, `"state": "auth_expired"`)
	})
	time.Sleep(waits(10 * time.Second)) // two looks, in which nothing may happen
	m.never("crashed", "exited_unfinished")
	if left := a.running(); len(left) > 0 {
		t.Errorf("it was started: %v", left)
	}
}
