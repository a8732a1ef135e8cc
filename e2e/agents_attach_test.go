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

// attach joins the terminal of the agent that the monitor has started.
func (m *watcher) attach() *terminal {
	m.t.Helper()
	m.await("a terminal that can be joined", func() bool {
		report, err := os.ReadFile(filepath.Join(m.dir, "run", agentName+".json"))
		return err == nil && strings.Contains(string(report), `"socket"`)
	})
	cmd := exec.Command(timed(), "agent", "attach", agentName, "--home", m.dir)
	cmd.Dir, cmd.Env = m.a.project, append(slices.Clone(m.environ()), "TERM=xterm-256color")
	term := startTerminal(m.t, cmd, nil)
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-term.exited
	})
	return term
}

// TestAPersonTakesOver: a killed CLI is resumed in a terminal of its own. A person joins it, sees what it shows, gives it another
// prompt, sees the answer, and leaves; it lives on, also when the monitor and another attach are killed.
func TestAPersonTakesOver(t *testing.T) {
	t.Parallel()
	for kind, goesOn := range map[string][]string{
		"claude": {"claude", "--resume", "{session}", "{preamble}"},
		"codex":  {"codex", "--dangerously-bypass-hook-trust", "resume", "{session}", "{preamble}"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{"start": declaration{"resume": goesOn}}
			a, m := startWatched(t, kind, mockmodel.Tool, agentSetup{}, d, nil)
			m.awaitTool()
			a.model.SetMode(mockmodel.Answer)
			a.signal(syscall.SIGKILL)
			term := m.attach()
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the person sees %q", term.raw(2000))
				}
			})
			sees := func(what, text string) {
				t.Helper()
				m.await(what, func() bool { return strings.Contains(term.text(), text) })
			}
			sees("how one leaves", `leave it: Ctrl-\`)
			a.resumed()
			turns, drawn := a.model.Turns(), len(term.raw(keptOutput))
			a.term = term // what is typed goes there
			a.again()
			m.await("the model to be asked", func() bool { return a.model.Turns() > turns && a.isTold("Once more") })
			// Its letters are looked for on whole screens below: here the CLI passes over those that stand where they belong already.
			m.await("the CLI to draw", func() bool { return len(term.raw(keptOutput)) > drawn })
			list := m.outlive("agent", "list", "--home", m.dir)
			if !strings.Contains(list, "shop: at its terminal: ") {
				t.Errorf("the list does not tell who is there:\n%s", list)
			}
			term.send("\x1c")
			term.send("\x1b[92;5u") // where the CLI has asked for it, the key comes in this form
			m.await("attach to end", func() bool {
				select {
				case <-term.exited:
					return true
				default:
					return false
				}
			})
			if !term.cmd.ProcessState.Success() || !strings.Contains(term.text(), "you have left shop; it goes on") {
				t.Errorf("attach ended with %v: %s", term.cmd.ProcessState, term.raw(400))
			}
			second := m.attach()
			m.await("the screen", func() bool { return strings.Contains(second.text(), "Once more") })
			m.kill()
			if err := second.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-second.exited
			if len(a.running()) == 0 {
				t.Error("the agent does not go on")
			}
			third := m.attach()
			m.await("the screen once more", func() bool { return strings.Contains(third.text(), "Once more") })
		})
	}
}

// TestPhoneAsks: /status and other texts to the bot are answered, and a stranger's are not.
func TestPhoneAsks(t *testing.T) {
	t.Parallel()
	_, m := startWatched(t, "claude", mockmodel.Question, agentSetup{}, declaration{"policy": declaration{"waiting_question": []string{"escalate"}}}, nil)
	m.tells(1, says("shop waits for an answer"))
	m.phone.Write(chatUser, chatName, "/status")
	m.tells(2, says("1 agent, 1 waits for you", "shop: waits for an answer", "Which database should the shop use?"))
	m.phone.Write(666, "666", "/status") // another chat
	m.phone.Write(chatUser, chatName, "hello?")
	m.tells(3, says("/status", "reply to the message"))
	m.phone.Write(chatUser, chatName, "are you there?")
	m.await("all to be heard", func() bool { return m.phone.Pending() == 0 })
	if n := len(m.phone.Messages()); n != 3 {
		t.Errorf("%d messages: %+v", n, m.phone.Messages())
	}
}
