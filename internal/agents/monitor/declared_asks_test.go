package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// asks is Claude Code's hook for a permission, which waits for an answer; what it says to the CLI comes from the channel.
func (c *claude) asks(command string) <-chan string {
	w := c.w
	w.t.Helper()
	payload := fmt.Sprintf(`{"session_id":%q,"cwd":%q,"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":%q}}`,
		c.session, w.dir(c.name), command)
	reply := make(chan string, 1)
	dir := hooks.Dir(w.home)
	ended := make(chan struct{})
	w.t.Cleanup(func() { <-ended }) // a hook that nobody answered records at the test's end that it was withdrawn
	go func() {
		defer close(ended)
		out, err := hooks.Run(w.t.Context(), hooks.Options{Vendor: hooks.VendorNamed("claude"), Dir: dir, Ask: true}, []byte(payload))
		if err != nil {
			out = []byte(err.Error())
		}
		reply <- string(out)
	}()
	await.Until(w.t, "the hook asks", func() bool { open, _ := hooks.Requests(dir); return len(open) > 0 })
	c.is("waiting", "permission prompt")
	return reply
}

// attended is a world in which somebody answers requests, and in which it is now: hooks have the real clock.
func attended(t *testing.T) *world {
	w := newWorld(t)
	w.wall = time.Now().Round(0)
	release, err := hooks.Announce(t.Context(), hooks.Dir(w.home))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = release() })
	return w
}

// A permission is asked on the phone with all that it is for, and a press answers the hook that waits; the agent goes on,
// and nothing of it is touched.
func TestAPermissionFromThePhone(t *testing.T) {
	t.Parallel()
	for label, behavior := range map[string]string{"Allow": "allow", "Deny": "deny"} {
		t.Run(label, func(t *testing.T) {
			w := attended(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			c := w.claude("shop", 1001)
			c.prompt()
			w.cycle()
			c.tool("Bash", `"command":"rm -r build"`)
			reply := c.asks("rm -r build")
			w.cycle()
			w.spends(10*time.Second, 5*time.Second)
			if len(w.said) != 1 || !strings.Contains(w.said[0], "rm -r build") {
				t.Fatalf("said %q", w.said)
			}
			if got := w.press(0, label); got != map[string]string{"Allow": "Allowed", "Deny": "Denied"}[label] {
				t.Errorf("answered %q", got)
			}
			w.cycle()
			select {
			case got := <-reply:
				if !strings.Contains(got, `"behavior":"`+behavior+`"`) {
					t.Errorf("the hook says %q", got)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("the hook was not answered")
			}
			c.is("busy", "")
			w.spends(20*time.Minute, time.Minute) // a long command: nothing is written meanwhile
			// Whoever has answered knows: the message is changed, and nothing rings again.
			if len(w.said) != 1 || !strings.Contains(w.shown[0].Text.Body, "resolved") || len(w.started)+len(w.stopped)+len(w.interrupted) != 0 {
				t.Errorf("said %q, shown %q, started %v", w.said, w.shown[0].Text.Body, w.started)
			}
		})
	}
}

// A hook also tells of permissions that its policy gives, and Claude Code's own file that nobody is asked.
func TestAPermissionThatNobodyHasToGive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	err := hooks.Drop(hooks.Dir(w.home), hooks.Event{
		Time: w.wall, Vendor: "claude", Name: "PermissionRequest", Session: c.session, Dir: w.dir("shop"), Tool: "Read", Input: "/etc/hosts",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.spends(time.Minute, time.Second)
	if len(w.said) != 0 {
		t.Errorf("said %q", w.said)
	}
}

// Codex tells nobody that it waits but its hook: that is enough, until it writes again.
func TestAPermissionAtCodexDialog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: codex\n"+starts))
	w.process(1001, w.dir("shop"), 0)
	w.args[1001] = []string{"codex"}
	w.cycle()
	ask := hooks.Event{Time: w.wall, Vendor: "codex", Name: "PermissionRequest", Session: "x", Dir: w.dir("shop"), Tool: "shell", Input: "make deploy"}
	if err := hooks.Drop(hooks.Dir(w.home), ask); err != nil {
		t.Fatal(err)
	}
	w.spends(time.Minute, 10*time.Second)
	if len(w.said) != 1 || !strings.Contains(w.said[0], "make deploy") {
		t.Fatalf("said %q", w.said)
	}
	done := hooks.Event{Time: w.wall, Vendor: "codex", Name: "PostToolUse", Session: "x", Dir: w.dir("shop")}
	if err := hooks.Drop(hooks.Dir(w.home), done); err != nil {
		t.Fatal(err)
	}
	w.spends(time.Minute, 10*time.Second)
	w.beats("shop", heartbeat.Working)
	w.cycle()
	if len(w.said) != 2 || !strings.Contains(w.said[1], "works again") {
		t.Errorf("said %q", w.said)
	}
}

// A press that comes too late is answered, and does nothing.
func TestAPressThatComesLate(t *testing.T) {
	t.Parallel()
	w := attended(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	reply := c.asks("make")
	w.cycle()
	callback := w.shown[0].Buttons[0][0].Callback
	open, err := hooks.Requests(hooks.Dir(w.home))
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	if err := hooks.Withdraw(hooks.Dir(w.home), open[0].ID); err != nil { // it was answered at the terminal
		t.Fatal(err)
	}
	<-reply
	c.tool("Bash", `"command":"make"`)
	c.is("busy", "")
	w.spends(10*time.Second, 5*time.Second)
	if got := w.presses(callback); !strings.HasPrefix(got, "already resolved") {
		t.Errorf("answered %q", got)
	}
	if got := w.presses(notify.Callback{Incident: "nobody", Verb: "allow", Nonce: "x"}); got != "This is not known any more" {
		t.Errorf("answered %q", got)
	}
	w.cycle()
	if len(w.started)+len(w.stopped) != 0 {
		t.Error("something was done")
	}
}

// What a person has answered at Claude Code's own dialog is not open any more. Its hook is let go, and a press is late.
func TestAPermissionGivenAtTheTerminal(t *testing.T) {
	t.Parallel()
	w := attended(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	reply := c.asks("make")
	w.cycle()
	w.spends(20*time.Second, 5*time.Second)
	open, err := hooks.Requests(hooks.Dir(w.home))
	if err != nil || len(open) != 1 || len(w.said) != 1 {
		t.Fatalf("while it waits: open %v, %v, said %q", open, err, w.said)
	}
	allow := w.shown[0].Buttons[0][0].Callback
	c.tool("Bash", `"command":"make"`)
	c.is("busy", "")
	if _, err := Inspect(t.Context(), w.opts); err != nil { // as outlive agent list does
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(hooks.Dir(w.home), "answers", open[0].ID+".json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking has settled the request: %v", err)
	}
	w.spends(10*time.Second, 5*time.Second)
	select {
	case got := <-reply:
		if strings.Contains(got, "behavior") {
			t.Errorf("the hook decides: %q", got)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the hook still waits")
	}
	if got := w.presses(allow); !strings.HasPrefix(got, "already resolved") {
		t.Errorf("a press is answered %q", got)
	}
}

// answering is a declaration of an agent to which a text can be given: it ends up in a file of its directory.
var answering = "start:\n  cmd: [agent, new]\n  resume: [agent, resume, \"{session}\"]\n" +
	"  nudge: " + noting("heard", "{session}", "{text}") + "\n"

// A question is put to a human, whose reply is given to the session; without one the agent is told to go on alone.
func TestAQuestion(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{"answered": "Take the blue one; $(rm -r x)", "nobody answers": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.opts.Environ = os.Environ()
			w.declare("", w.agent("shop", "kind: claude\n"+answering))
			c := w.claude("shop", 1001).headless()
			c.prompt()
			w.cycle()
			c.tool("AskUserQuestion", `"questions":[{"question":"Which colour?"}]`)
			c.is("waiting", "input needed")
			w.spends(time.Minute, 30*time.Second)
			if len(w.said) != 1 || !strings.Contains(w.said[0], "Which colour?") || w.heard("shop") != "" {
				t.Fatalf("said %q, heard %q", w.said, w.heard("shop"))
			}
			if answer != "" {
				w.replies(0, answer)
				w.cycle()
				if got := w.heard("shop"); got != "s-shop|"+answer+"|" {
					t.Errorf("the agent was told %q", got)
				}
				c.prompt()
				w.cycle()
				if len(w.said) != 2 || !strings.Contains(w.said[1], "works again") {
					t.Errorf("said %q", w.said)
				}
				return
			}
			w.spends(16*time.Minute, 30*time.Second)
			if got := w.heard("shop"); !strings.Contains(got, "Nobody is at the keyboard") && !strings.Contains(got, "Go on with the task") {
				t.Errorf("the agent was told %q", got)
			}
			if strings.Count(w.heard("shop"), "s-shop") != 1 || len(w.started) != 0 {
				t.Errorf("heard %q, started %v", w.heard("shop"), w.started)
			}
			w.spends(6*time.Minute, 30*time.Second)
			if got := w.rungs(); !slices.Equal(got, []string{"resume"}) {
				t.Errorf("started %v", got)
			}
		})
	}
}

// Claude Code tells its status a moment before its transcript has the question: the message has it all the same.
func TestAQuestionThatIsReadLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\npolicy: {waiting_question: [escalate]}\n"))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	c.is("waiting", "input needed")
	w.spends(15*time.Second, 5*time.Second)
	if len(w.shown) != 1 {
		t.Fatalf("said %q", w.said)
	}
	c.tool("AskUserQuestion", `"questions":[{"question":"Which colour?"}]`)
	w.spends(15*time.Second, 5*time.Second)
	if len(w.shown) != 1 || !strings.Contains(w.shown[0].Text.Body, "Which colour?") {
		t.Errorf("said %q, shown %+v", w.said, w.shown)
	}
	before := len(w.said)
	w.spends(2*time.Minute, 5*time.Second)
	if len(w.said) != before {
		t.Errorf("changed again: %q", w.said[before:])
	}
}

func (w *world) heard(name string) string { return w.read(filepath.Join("projects", name, "heard")) }

// Who replies to an agent that nothing can be said to hears of it.
func TestAReplyThatCannotBeGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	c.is("waiting", "input needed")
	w.spends(time.Minute, 30*time.Second)
	w.replies(0, "blue")
	w.cycle()
	w.cycle()
	if len(w.said) != 2 || !strings.Contains(w.said[1], "shop did not get your answer") {
		t.Errorf("said %q", w.said)
	}
}

// Whoever acknowledges is left alone for a while; whoever snoozes, shorter; and then it is told again.
func TestAcknowledging(t *testing.T) {
	t.Parallel()
	for label, quiet := range map[string]time.Duration{"Ack": 4 * time.Hour, "Snooze": time.Hour} {
		t.Run(label, func(t *testing.T) {
			w := newWorld(t)
			w.wall = time.Now().Round(0) // a press has the real clock
			w.declare("", w.agent("shop", "kind: claude\npolicy: {crashed: [escalate]}\n"+starts))
			w.claude("shop", 1001).prompt()
			w.cycle()
			clear(w.living)
			w.spends(10*time.Second, 10*time.Second)
			w.wall = time.Now().Round(0)
			if len(w.said) != 1 {
				t.Fatalf("said %q", w.said)
			}
			w.press(0, label)
			w.spends(quiet-5*time.Minute, 5*time.Minute)
			if len(w.said) != 1 {
				t.Errorf("within %s said %q", quiet, w.said[1:])
			}
			w.spends(15*time.Minute, 5*time.Minute)
			if len(w.said) != 2 {
				t.Errorf("afterwards said %q", w.said[1:])
			}
		})
	}
}

// Stopped by a person: it ends, and nothing is done about it until somebody starts it again.
func TestStoppedByAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wall = time.Now().Round(0)
	w.declare("", w.agent("shop", "kind: claude\npolicy: {model_silent: [escalate]}\n"+starts))
	w.claude("shop", 1001).prompt()
	w.cycle()
	w.spends(9*time.Minute, time.Minute)
	if len(w.said) != 1 {
		t.Fatalf("said %q", w.said)
	}
	if got := w.press(0, "Stop"); got != "It is stopped" {
		t.Errorf("answered %q", got)
	}
	w.spends(12*time.Hour, time.Hour)
	if !slices.Equal(w.stopped, []int{1001}) || len(w.started) != 0 || len(w.said) != 1 {
		t.Errorf("stopped %v, started %v, said %q", w.stopped, w.started, w.said)
	}
	w.claude("shop", 1002).prompt()
	w.spends(time.Minute, time.Minute)
	clear(w.living)
	w.spends(time.Minute, time.Minute)
	if len(w.started) != 1 {
		t.Error("it was started again, and is not watched")
	}
}

// A press on Restart restarts, whatever the budgets say, once.
func TestRestartFromThePhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wall = time.Now().Round(0)
	w.declare("", w.agent("shop", "kind: claude\npolicy: {model_silent: [escalate]}\nbudget: {global: 1/1h}\n"+starts))
	w.claude("shop", 1001).prompt()
	w.cycle()
	w.spends(9*time.Minute, time.Minute)
	callback := w.shown[0].Buttons[0][1].Callback
	if callback.Verb != "restart" {
		t.Fatalf("%+v", w.shown[0].Buttons)
	}
	w.presses(callback)
	if got := w.presses(callback); !strings.HasPrefix(got, "already done: restart by @ann") {
		t.Errorf("the second press: %q", got)
	}
	w.spends(2*time.Minute, time.Minute)
	if !slices.Equal(w.rungs(), []string{"new"}) || !slices.Equal(w.stopped, []int{1001}) {
		t.Errorf("started %v, stopped %v", w.rungs(), w.stopped)
	}
	if log := w.read("improvement-log.md"); !strings.Contains(log, "restart (requested by @ann (7))") {
		t.Error(log)
	}
}

// A limit with an end is waited for, in silence; nothing of the agent is touched.
func TestARateLimitIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	until := w.wall.Add(2 * time.Hour)
	c.writes(fmt.Sprintf(`"type":"assistant","isApiErrorMessage":true,"error":"rate_limit","message":{"role":"assistant","stop_reason":"stop_sequence","content":[{"type":"text","text":"Claude usage limit reached|%d"}]}`, until.Unix()))
	c.is("idle", "")
	w.spends(2*time.Hour-10*time.Minute, 5*time.Minute)
	if len(w.started)+len(w.stopped)+len(w.interrupted)+len(w.said) != 0 {
		t.Fatalf("before the end: started %v, said %q", w.started, w.said)
	}
	w.spends(12*time.Minute, time.Minute)
	if !slices.Equal(w.rungs(), []string{"resume"}) {
		t.Errorf("after it: started %v, said %q", w.rungs(), w.said)
	}
}
