package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/faketelegram"
	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// kinds are the CLIs that every test of the phone is done with.
var kinds = []string{"claude", "codex"}

// startAsking starts an agent that wants to run `touch approved.txt`, for which it has to ask, with a monitor that hands
// such requests to the phone. It returns the message that asks.
func startAsking(t *testing.T, kind string, hooks ...string) (*agent, *watcher, faketelegram.Message) {
	t.Helper()
	a, m := startWatched(t, kind, mockmodel.Permission, agentSetup{}, nil, append([]string{"--ask"}, hooks...), "--permissions", "--answers", "on")
	a.awaitHook("PermissionRequest")
	asked := time.Now()
	// Its file may say so before its hook asks: then the buttons come with a change of the message.
	asks := says("shop waits for a permission", "touch approved.txt")
	msg := m.tells(1, func(msg faketelegram.Message) bool {
		return asks(msg) && slices.ContainsFunc(msg.Buttons, func(b faketelegram.Button) bool { return b.Label == "Allow" })
	})
	t.Logf("the phone rang %v after the agent asked", time.Since(asked).Round(time.Millisecond))
	return a, m, msg
}

// approved reports whether the command was run that needs a permission.
func (a *agent) approved() bool {
	_, err := os.Stat(filepath.Join(a.project, "approved.txt"))
	return err == nil
}

// isTold reports whether the model was told so.
func (a *agent) isTold(text string) bool {
	return slices.ContainsFunc(a.model.Requests(), func(r mockmodel.Request) bool { return strings.Contains(string(r.Body), text) })
}

// TestPhoneThatNobodyHears: where Telegram hands what is pressed to somebody else, a question has no buttons: what they would promise
// cannot be kept. It names what can be done instead.
func TestPhoneThatNobodyHears(t *testing.T) {
	t.Parallel()
	m := newWatcher(t)
	m.phone.Webhook = true
	m.startAgent("claude", mockmodel.Permission, agentSetup{}, nil, []string{"--ask"}, "--permissions", "--answers", "on")
	asks := says("shop waits for a permission", "answers are not heard now", "outlive ack")
	m.tells(1, func(msg faketelegram.Message) bool { return asks(msg) && len(msg.Buttons) == 0 })
}

// TestPhoneAllows: a press of Allow, and nothing else, makes the agent run the command.
func TestPhoneAllows(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, m, msg := startAsking(t, kind)
			button(t, msg, "Deny")
			if a.approved() {
				t.Error("the command was run before anybody allowed it")
			}
			pressed := time.Now()
			if answer := m.press(msg, "Allow"); answer != "Allowed" {
				t.Errorf("the press was answered with %q", answer)
			}
			a.await("the command", a.approved)
			t.Logf("the command had run %v after the press", time.Since(pressed).Round(time.Millisecond))
			a.turnEnds()
			m.tells(1, says("🟢", "resolved", "allow by User 42"))
			if answer := m.press(msg, "Deny"); !strings.Contains(answer, "already") {
				t.Errorf("the late press was answered with %q", answer)
			}
			m.decided("allow")
		})
	}
}

// TestPhoneDenies: a press of Deny, and the agent is told by whom.
func TestPhoneDenies(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, m, msg := startAsking(t, kind)
			if answer := m.press(msg, "Deny"); answer != "Denied" {
				t.Errorf("the press was answered with %q", answer)
			}
			a.await("the model to hear of it", func() bool { return a.isTold("Denied by User 42") })
			a.turnEnds()
			m.tells(1, says("🟢", "resolved", "deny by User 42"))
			if a.approved() {
				t.Error("the command was run")
			}
			m.decided("deny")
		})
	}
}

// decided checks the record of who decided what.
func (m *watcher) decided(outcome string) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, "hooks", "decisions.jsonl"))
	if err != nil {
		m.t.Fatal(err)
	}
	all := records(text)
	if len(all) != 1 || all[0]["outcome"] != outcome || all[0]["by"] != "User 42 (42)" || !strings.Contains(all[0]["command"].(string), "touch approved.txt") {
		m.t.Errorf("the record of decisions: %s", text)
	}
}

// TestPhoneIsTooLate: the human was at the keyboard before the phone. Claude Code shows its dialog at once, Codex when
// nobody has answered in time.
func TestPhoneIsTooLate(t *testing.T) {
	needFull(t, "it judges by the clock: the phone has 15 s, and the keyboard must be sooner")
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, m, msg := startAsking(t, kind, "--wait", "15s")
			key := "\r"
			if kind == "codex" {
				key = "y"
			}
			a.awaitDialog()
			a.answer(key)
			a.await("the command", a.approved)
			a.turnEnds()
			m.tells(1, says("🟢", "resolved"))
			if answer := m.press(msg, "Deny"); !strings.Contains(answer, "already resolved") {
				t.Errorf("the late press was answered with %q", answer)
			}
		})
	}
}

// TestPhoneIsSilent: nobody answers. The agent's own dialog stays, the command is not run, and the message offers no
// more what is not to be had.
func TestPhoneIsSilent(t *testing.T) {
	needFull(t, "it judges by the clock: nobody answers within 12 s")
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a, m, msg := startAsking(t, kind, "--wait", "12s")
			m.tells(1, func(now faketelegram.Message) bool {
				return !slices.ContainsFunc(now.Buttons, func(b faketelegram.Button) bool { return b.Label == "Allow" })
			})
			a.awaitDialog()
			if answer := m.press(msg, "Allow"); !strings.Contains(answer, "not possible") {
				t.Errorf("the late press was answered with %q", answer)
			}
			if a.approved() {
				t.Error("the command was run")
			}
			a.awaitDialog()
			a.answer(map[string]string{"claude": "\r", "codex": "y"}[kind])
			a.await("the command", a.approved)
		})
	}
}

// crash kills an agent that nothing is done about by itself, and returns the message that tells of it.
func crash(t *testing.T, kind string) (*agent, *watcher, faketelegram.Message) {
	t.Helper()
	start := map[string][]string{"claude": {"claude", "-p", agentPrompt}, "codex": {"codex", "exec", "--skip-git-repo-check", agentPrompt}}[kind]
	d := declaration{"start": declaration{"cmd": start}, "policy": declaration{"crashed": []string{"escalate"}}}
	a, m := startWatched(t, kind, mockmodel.Tool, agentSetup{}, d, nil)
	m.awaitTool()
	a.signal(9)
	return a, m, m.tells(1, says("🔴", "shop has crashed"))
}

// TestPhoneButtons: an incident's other buttons, each of which changes the one message.
func TestPhoneButtons(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			onePerKind(t, kind == "codex")
			t.Parallel()
			a, m, msg := crash(t, kind)
			for _, press := range []struct{ label, answer, shown string }{
				{"Details", "shows more", "Details: "},
				{"Ack", "acknowledged until", "acknowledged by User 42"},
				{"Snooze", "snoozed until", "snoozed by User 42"},
			} {
				if answer := m.press(msg, press.label); !strings.Contains(answer, press.answer) {
					t.Errorf("%s was answered with %q", press.label, answer)
				}
				m.tells(1, says(press.shown))
			}
			if n := a.model.Turns(); n != 1 {
				t.Errorf("%d turns: it was started although nobody wanted that", n)
			}
			if answer := m.press(msg, "Restart"); answer != "It is restarted" {
				t.Errorf("Restart was answered with %q", answer)
			}
			a.await("the new agent", func() bool { return a.model.Turns() > 1 })
			m.tells(1, says("🟢", "resolved", "after 1 restart", "restart by User 42"))
			if answer := m.press(msg, "Restart"); !strings.Contains(answer, "already") {
				t.Errorf("the second press was answered with %q", answer)
			}
			if running := a.running(); len(running) == 0 || kind == "claude" && len(running) > 1 { // Codex are two
				t.Errorf("running: %v", running)
			}
		})
	}
}

// TestPhoneStops: Stop ends the agent with everything it has started, and it stays so.
func TestPhoneStops(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			onePerKind(t, kind == "claude")
			t.Parallel()
			d := declaration{
				"start":  declaration{"cmd": []string{"false"}, "resume": []string{"false"}},
				"policy": declaration{"waiting_question": []string{"escalate"}},
				"budget": declaration{"kill_grace": "2s"},
			}
			a, m := startWatched(t, kind, mockmodel.Question, agentSetup{}, d, nil)
			msg := m.tells(1, says("shop waits for an answer", "Which database should the shop use?"))
			if answer := m.press(msg, "Stop"); answer != "It is stopped" {
				t.Errorf("the press was answered with %q", answer)
			}
			a.ended()
			m.tells(1, says("resolved", "stopped by User 42"))
			a.await("the end of every process", func() bool { return len(a.running()) == 0 })
			m.judges("not_watched")
			m.never("crashed", "exited_unfinished")
			if n := len(m.phone.Messages()); n != 1 {
				t.Errorf("%d messages: %+v", n, m.phone.Messages())
			}
		})
	}
}

// TestPhoneReplies: what is replied to the message of a question reaches the agent by the command that is declared for
// it, here one that types into its terminal, as tmux does.
func TestPhoneReplies(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := declaration{
				"start":  declaration{"nudge": []string{"sh", "-c", `printf %s "$1" >said.new && mv said.new said`, "say", "{text}"}},
				"expect": declaration{"waiting": "1s"},
				"policy": declaration{"waiting_question": []string{"escalate"}},
			}
			a, m := startWatched(t, kind, mockmodel.Ask, agentSetup{}, d, nil)
			msg := m.tells(1, says("shop waits for an answer", "Which database should the shop use?"))
			a.model.SetMode(mockmodel.Answer)
			m.knowsItIsTold() // nobody reads and answers within the milliseconds until that is written down
			const reply = "SQLite; it's \"one\" file & $HOME stays"
			m.phone.Reply(chatUser, msg.ID, reply)
			var said []byte
			a.await("the reply", func() (ok bool) {
				said, _ = os.ReadFile(filepath.Join(a.project, "said"))
				return len(said) > 0
			})
			a.enter(string(said))
			a.await("the model to hear the reply", func() bool { return a.isTold(`SQLite; it's \"one\" file`) })
			m.tells(1, says("🟢", "resolved"))
		})
	}
}

// knowsItIsTold waits until the monitor has it in writing that the message has arrived: killed before, it would have to
// send it again, and say so.
func (m *watcher) knowsItIsTold() {
	m.t.Helper()
	m.await("the incident's being notified", func() bool {
		list := records([]byte(m.outlive("ack", "--json", "--home", m.dir)))
		return len(list) == 1 && list[0]["state"] == "notified"
	})
}

// TestPhoneOutlivesTheMonitor: it is killed between the message and the press. Started again, it understands the press,
// and tells nobody twice.
func TestPhoneOutlivesTheMonitor(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind+"/incident", func(t *testing.T) {
			onePerKind(t, kind == "codex")
			t.Parallel()
			_, m, msg := crash(t, kind)
			m.knowsItIsTold()
			m.kill()
			call := m.push(msg, "Ack")
			m.start()
			if answer := m.answered(call); !strings.Contains(answer, "acknowledged until") {
				t.Errorf("the press was answered with %q", answer)
			}
			m.tells(1, says("acknowledged by User 42"))
			if n := len(m.phone.Messages()); n != 1 {
				t.Errorf("%d messages: %+v", n, m.phone.Messages())
			}
		})
		t.Run(kind+"/permission", func(t *testing.T) {
			onePerKind(t, kind == "claude")
			t.Parallel()
			a, m, msg := startAsking(t, kind)
			m.knowsItIsTold()
			m.kill()
			call := m.push(msg, "Allow")
			m.start()
			if answer := m.answered(call); answer != "Allowed" {
				t.Errorf("the press was answered with %q", answer)
			}
			a.await("the command", a.approved)
			a.turnEnds()
			m.tells(1, says("🟢", "resolved"))
			if list := m.phone.Messages(); len(list) > 2 || len(list) == 2 && !strings.Contains(list[1].Text, "works again") {
				t.Errorf("%d messages: %+v", len(list), list)
			}
		})
	}
}
