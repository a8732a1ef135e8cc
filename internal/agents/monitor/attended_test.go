package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// patient is a declaration of one whose model may take as long as it wants.
const patient = "kind: claude\nexpect: {model_silent: 12h}\n" + starts

// question is the tool by which Claude Code asks the human.
const question = `"questions":[{"question":"Which colour?"}]`

// A question is put to a human first, and a stated time is waited, also where the agent cannot be given an answer from afar:
// somebody may be in front of it.
func TestAQuestionWaitsForAHuman(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", patient))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	w.spends(2*time.Hour, 10*time.Minute)
	c.tool("AskUserQuestion", question)
	c.is("waiting", "input needed")
	w.spends(14*time.Minute, 10*time.Second)
	if len(w.stopped)+len(w.started) != 0 || len(w.said) != 1 || !strings.Contains(w.said[0], "Which colour?") {
		t.Fatalf("stopped %v, started %v, said %q", w.stopped, w.started, w.said)
	}
	w.spends(3*time.Minute, 10*time.Second)
	if got := w.rungs(); !slices.Equal(got, []string{"resume"}) {
		t.Fatalf("after 17 minutes without an answer: started %v", got)
	}
	if log := w.read("improvement-log.md"); !strings.Contains(log, "nudge was left out: no nudge command is declared") {
		t.Errorf("a step that could not be done is not recorded:\n%s", log)
	}
}

// What cannot be done is shown before it is tried, too.
func TestExplainShowsWhatIsLeftOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.opts.Channels = nil
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	c.tool("AskUserQuestion", question)
	c.is("waiting", "input needed")
	view, err := Inspect(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(view.Findings[0].Decision.LeftOut, "; ")
	if got != "ask_phone has no effect: no channel is set up; nudge was left out: no nudge command is declared; escalate has no effect: no channel is set up" {
		t.Errorf("left out: %q", got)
	}
}

// Nobody ends a session in which a person has typed only just, whatever is wrong with it. The record says so.
func TestAnAttendedSessionIsNeverEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		types func(*world, *claude)
		ends  bool // because nobody has typed
	}{
		"its own files": {types: func(w *world, c *claude) { c.prompt() }},
		"its hook": {types: func(w *world, c *claude) {
			if err := hooks.Drop(hooks.Dir(w.home), hooks.Event{Time: w.wall, Vendor: "claude", Name: "UserPromptSubmit", Session: c.session, Dir: w.dir("shop"), PID: c.pid}); err != nil {
				t.Fatal(err)
			}
		}},
		"its terminal": {types: func(w *world, c *claude) { w.typed = w.wall; w.reports("shop", 1001, nil) }},
		"nobody":       {types: func(*world, *claude) {}, ends: true},
		"without a terminal": {types: func(w *world, c *claude) {
			w.reportsOf("shop", 1001, true, nil)
			c.prompt()
		}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\npolicy: {model_silent: [resume]}\nexpect: {model_silent: 1m, tool: 12h}\n"+starts))
			c := w.claude("shop", 1001)
			w.process(1000, w.dir("shop"), time.Minute)
			c.prompt()
			w.cycle()
			call := fmt.Sprintf("t%d", w.wall.Unix())
			c.tool("Bash", `"command":"make"`)
			w.spends(40*time.Minute, 5*time.Minute)
			c.writes(`"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + call + `","content":"ok"}]}`)
			tt.types(w, c)
			w.spends(20*time.Minute, time.Minute)
			if got := len(w.stopped) > 0; got != tt.ends {
				t.Fatalf("within 20 minutes: stopped %v, started %v", w.stopped, w.rungs())
			}
			if tt.ends {
				return
			}
			if log := w.read("improvement-log.md"); strings.Count(log, "a person typed in it, or joined its terminal, at ") != 1 {
				t.Errorf("the record does not say once why it is left alone:\n%s", log)
			}
			w.spends(15*time.Minute, time.Minute)
			if len(w.stopped) == 0 {
				t.Error("35 minutes after the last key it is still left alone")
			}
		})
	}
}

// Who is told that an agent waits at its terminal is told how to get there, where that works.
func TestAMessageNamesTheWayToTheTerminal(t *testing.T) {
	t.Parallel()
	for _, socket := range []string{"", "/run/shop.tty"} {
		w := newWorld(t)
		w.socket = socket
		w.declare("", w.agent("shop", "kind: claude\n"+starts))
		c := w.claude("shop", 1001)
		w.process(1000, w.dir("shop"), time.Minute)
		w.reports("shop", 1001, nil)
		c.prompt()
		w.cycle()
		c.is("waiting", "dialog open")
		w.spends(5*time.Minute, 10*time.Second)
		if len(w.said) != 1 || strings.Contains(w.said[0], "at its terminal (outlive agent attach shop)") != (socket != "") {
			t.Errorf("with the socket %q: said %q", socket, w.said)
		}
	}
}

// Who is told that an agent asks is told only of ways to answer that there are.
func TestAMessageNamesOnlyWaysToAnswer(t *testing.T) {
	t.Parallel()
	const nudge = "start: {nudge: [sh, -c, 'true', \"{text}\"]}\n"
	for name, tt := range map[string]struct {
		head, keys string
		piped      bool
		want       string
	}{
		"a terminal, no nudge":   {"", "", false, "answer at its terminal"},
		"a terminal and a nudge": {"", nudge, false, "answer by a reply to this message, or at its terminal"},
		"pipes and a nudge":      {"", nudge, true, "answer by a reply to this message"},
		"pipes, no nudge": {"", "", true, "it can be given no answer, since it has no terminal and no nudge command: end it (outlive agent stop shop), " +
			"declare one of them below its start:, and start it again (outlive agent start shop)"},
		"a channel that only speaks": {"channels: {page: 'exec:page-me', telegram: telegram}\n", nudge + "escalate: {to: page}\n", true, "answer by a text (outlive agent say shop TEXT)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.piped = tt.piped
			w.opts.OpenChannel = func(registry.Channel) (notify.Channel, error) { return w, nil }
			w.declare(tt.head, w.agent("shop", "kind: command\n"+tt.keys))
			w.process(1000, w.dir("shop"), time.Minute)
			w.process(1001, w.dir("shop"), time.Minute)
			w.reports("shop", 1001, nil)
			w.beats("shop", heartbeat.Waiting)
			w.cycle()
			w.spends(2*time.Minute, 10*time.Second)
			if len(w.said) != 1 || !strings.Contains(w.said[0]+"\n", "\nTo do: "+tt.want+"\n") {
				t.Errorf("said %q, want %q", w.said, tt.want)
			}
		})
	}
}

// Nobody ends a session to which a person has come by outlive agent attach, whoever has started it: the monitor, too. Coming counts
// as a key does; who leaves their window open for the night does not hold up what is to be done for longer than that.
func TestAnAttachedSessionIsNeverEnded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		comes func(*world)
		goes  func(*world) // ten minutes later
		ends  bool         // within 20 minutes after that
	}{
		"nobody":              {comes: func(*world) {}, ends: true},
		"somebody types":      {comes: func(w *world) { w.typed = w.wall }},
		"somebody comes":      {comes: func(w *world) { w.joined = []agentrun.Joined{{Who: "ann", PID: 7, Since: w.wall}} }},
		"somebody only looks": {comes: func(w *world) { w.joined = []agentrun.Joined{{Who: "ann", PID: 7, ReadOnly: true, Since: w.wall}} }},
		"somebody types and leaves": {
			comes: func(w *world) { w.typed, w.joined = w.wall, []agentrun.Joined{{Who: "ann", PID: 7, Since: w.wall}} },
			goes:  func(w *world) { w.joined = nil },
		},
		"somebody came yesterday": {
			comes: func(w *world) { w.joined = []agentrun.Joined{{Who: "ann", PID: 7, Since: w.wall.Add(-20 * time.Hour)}} }, ends: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\npolicy: {model_silent: [resume], crashed: [restart]}\nexpect: {model_silent: 1m}\n"+starts))
			w.claude("shop", 1001).prompt()
			w.cycle()
			clear(w.living)
			w.spends(time.Minute, 10*time.Second)
			if got := w.rungs(); !slices.Equal(got, []string{"new"}) {
				t.Fatalf("the monitor was to start it: %v", got)
			}
			c := w.claude("shop", 5002) // behind the wrapper, 5001
			c.session = "s-second"
			w.parents[c.pid] = 5001
			tt.comes(w)
			w.reports("shop", c.pid, nil)
			c.prompt() // by the command that the monitor has started: nobody's
			for range 2 {
				w.spends(10*time.Minute, time.Minute)
				if tt.goes != nil {
					tt.goes(w)
					w.reports("shop", c.pid, nil)
				}
			}
			if got := slices.Contains(w.stopped, c.pid); got != tt.ends {
				t.Fatalf("within 20 minutes: stopped %v, started %v", w.stopped, w.rungs())
			}
			if tt.ends {
				return
			}
			w.spends(15*time.Minute, time.Minute)
			if !slices.Contains(w.stopped, c.pid) {
				t.Errorf("35 minutes after the last that a person has done it is still left alone; said %q", w.said)
			}
		})
	}
}

// exits is the end of a process that was looked at while it lived.
func (c *claude) exits(code int) {
	delete(c.w.living, c.pid)
	c.w.reportsOf(c.name, c.pid, true, &agentrun.Exit{Code: code, At: c.w.wall})
}

// fails is an error that stands in the place of the model's answer, as the CLI has it after its own retries.
func (c *claude) fails(word, status, text string) {
	c.writes(`"type":"assistant","isApiErrorMessage":true,"error":"` + word + `","apiErrorStatus":` + status +
		`,"message":{"role":"assistant","content":[{"type":"text","text":"` + text + `"}]}`)
	c.is("idle", "")
}

// An error that passes by itself is waited for, with growing delays, and then the session goes on. Only when that is used up
// is a human told.
func TestATransientErrorDoesNotEndTheNight(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"overloaded": `API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}`,
		"no DNS":     "API Error: Unable to connect to API (ENOTFOUND)",
		"timeout":    "API Error: Request timed out",
		"cut":        "API Error: Response stalled mid-stream",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", patient))
			c := w.claude("shop", 1001)
			c.prompt()
			w.cycle()
			w.spends(time.Hour, 10*time.Minute)
			c.fails("unknown", "null", text)
			w.spends(30*time.Second, 10*time.Second)
			if len(w.said)+len(w.started) != 0 {
				t.Fatalf("at once: said %q, started %v", w.said, w.rungs())
			}
			w.spends(3*time.Minute, 10*time.Second)
			if got := w.rungs(); !slices.Equal(got, []string{"resume"}) || len(w.said) != 0 {
				t.Fatalf("after three minutes: started %v, said %q", got, w.said)
			}
		})
	}
}

// The cause outlives the process. A login, missing credit and a full context are not cured by a start; a limit is waited for.
func TestTheCauseOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		word, status, text string
		said               string        // of the message; "": none
		after              time.Duration // when it is resumed; 0: never
	}{
		"dead login":   {word: "authentication_failed", status: "401", text: "Please run /login", said: "is logged out"},
		"no credit":    {word: "billing_error", status: "400", text: "Credit balance is too low", said: "has no credit left"},
		"full context": {word: "invalid_request", status: "400", text: "Prompt is too long", said: "context"},
		"a limit":      {word: "rate_limit", status: "429", text: "You've hit your limit · resets 3am (UTC)", after: time.Hour},
		"overloaded":   {word: "overloaded", status: "529", text: "Overloaded", after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\nstart: {cmd: [agent, new], resume: [agent, resume, \"{session}\"]}\nexpect: {model_silent: 12h}\n"))
			c := w.claude("shop", 1001)
			w.process(1000, w.dir("shop"), time.Minute)
			w.reportsOf("shop", 1001, true, nil)
			c.prompt()
			w.cycle()
			w.pass(10 * time.Second) // nobody looks between the error and the end
			c.fails(tt.word, tt.status, tt.text)
			c.exits(1)
			w.spends(max(tt.after-30*time.Second, 30*time.Second), max(tt.after/60, 10*time.Second))
			if len(w.started) != 0 {
				t.Errorf("before its time: started %v", w.rungs())
			}
			w.spends(3*time.Minute, 10*time.Second)
			switch {
			case tt.after == 0 && len(w.started) != 0, tt.after != 0 && !slices.Equal(w.rungs(), []string{"resume"}):
				t.Fatalf("started %v", w.rungs())
			case tt.said == "" && len(w.said) != 0, tt.said != "" && (len(w.said) != 1 || !strings.Contains(w.said[0], tt.said)):
				t.Errorf("said %q", w.said)
			}
			if tt.after != 0 {
				w.claude("shop", 5001).prompt()
			}
			was := len(w.started)
			w.spends(3*time.Hour, 5*time.Minute)
			if len(w.started) != was {
				t.Errorf("later: started %v", w.rungs())
			}
		})
	}
}

// What a session showed at its end still counts days later, when its transcript is too old to be read.
func TestTheCauseOutlivesItsTranscript(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(*claude)
		want diagnose.Class
	}{
		"ended by a person": {func(c *claude) {
			c.writes(`"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}`)
		}, diagnose.NotWatched},
		"a limit of days": {func(c *claude) { c.fails("rate_limit", "429", "Weekly limit · resets Mar 7, 9am (UTC)") }, diagnose.RateLimited},
		"a full context":  {func(c *claude) { c.fails("invalid_request", "400", "Prompt is too long") }, diagnose.ContextExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\npolicy: {context_exhausted: [escalate]}\n"+starts))
			c := w.claude("shop", 1001)
			w.process(1000, w.dir("shop"), time.Minute)
			w.reportsOf("shop", 1001, true, nil)
			c.prompt()
			w.cycle()
			w.pass(10 * time.Second)
			tt.end(c)
			c.exits(1)
			transcript := filepath.Join(w.opts.Places[agentcli.Claude], "projects", noWord.ReplaceAllString(w.dir("shop"), "-"), c.session+".jsonl")
			if err := os.Chtimes(transcript, w.wall, w.wall); err != nil {
				t.Fatal(err)
			}
			w.cycle()
			w.spends(72*time.Hour, time.Hour)
			view, err := Inspect(t.Context(), w.opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := view.Findings[0].Diagnosis; got.Class != tt.want || len(w.started) != 0 {
				t.Errorf("after three days it is %s (%s), started %v", got.Class, got.Details, w.rungs())
			}
		})
	}
}

// A dialog before a cause does not hide it, and one before a finished agent is nobody's business.
func TestADialogHidesNoCause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		word, status, text string
		said               string // "": nothing
	}{
		"a dead login":   {"authentication_failed", "401", "Please run /login", "is logged out"},
		"a full context": {"invalid_request", "400", "Prompt is too long", "context"},
		"a limit":        {"rate_limit", "429", "You've hit your limit · resets 3am (UTC)", ""},
		"overloaded":     {"overloaded", "529", "Overloaded", ""},
		"finished":       {"", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"))
			c := w.claude("shop", 1001)
			c.prompt()
			w.cycle()
			w.pass(10 * time.Second)
			if tt.word == "" {
				c.ends("All done.")
			} else {
				c.fails(tt.word, tt.status, tt.text)
			}
			c.is("waiting", "dialog open")
			w.spends(time.Minute, 10*time.Second)
			if tt.said == "" && len(w.said) > 0 || tt.said != "" && (len(w.said) != 1 || !strings.Contains(w.said[0], tt.said)) {
				t.Errorf("said %q", w.said)
			}
		})
	}
}

// A turn that a person has ended by Esc is over, whatever its model said before.
func TestEscDuringALimitIsIdle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	c.writes(`"type":"system","subtype":"api_error","error":{"status":429,"message":"rate limited"},"retryAttempt":3,"maxRetries":10`)
	w.spends(time.Minute, 10*time.Second)
	c.writes(`"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]}`)
	c.is("idle", "")
	w.spends(4*time.Hour, 5*time.Minute)
	view, err := Inspect(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if got := view.Findings[0].Diagnosis.Class; got != "idle" || len(w.started) != 0 {
		t.Errorf("it is %s, started %v, said %q", got, w.started, w.said)
	}
}

// Agents that share a limit go on one by one: the first shows whether it is lifted.
func TestAfterASharedLimitOneIsTriedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"blog", "shop", "wiki"}
	var declared []string
	var all []*claude
	for _, name := range names {
		declared = append(declared, w.agent(name, patient))
	}
	w.declare("", declared...)
	for i, name := range names {
		c := w.claude(name, 1001+i)
		c.prompt()
		all = append(all, c)
	}
	w.cycle()
	w.spends(45*time.Minute, 5*time.Minute)
	for _, c := range all {
		c.fails("rate_limit", "429", "You've hit your limit · resets 4am (UTC)")
	}
	w.spends(75*time.Minute, time.Minute)
	if len(w.started) != 0 || len(w.said) == 0 || !strings.Contains(w.said[0], "3 agents with the account of claude fail together (limit)") {
		t.Fatalf("before the reset: started %v, said %q", w.rungs(), w.said)
	}
	w.spends(4*time.Minute, 30*time.Second)
	if len(w.started) != 1 {
		t.Fatalf("after the reset, before one of them works: %d were started", len(w.started))
	}
	first := strings.TrimPrefix(w.started[0].Dir, w.dir(""))
	c := w.claude(strings.Trim(first, "/"), 5001) // it works
	c.prompt()
	w.spends(5*time.Minute, 30*time.Second)
	if len(w.started) != 3 {
		t.Errorf("after the first works: %d were started", len(w.started))
	}
}

// One message about many has one cause: a login, a limit and a crash are three.
func TestAMassHasOneCause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	names := []string{"a1", "a2", "b1", "b2"}
	var declared []string
	for _, name := range names {
		declared = append(declared, w.agent(name, patient))
	}
	w.declare("", declared...)
	all := map[string]*claude{}
	for i, name := range names {
		all[name] = w.claude(name, 1001+i)
		all[name].prompt()
	}
	w.cycle()
	w.pass(10 * time.Second)
	for _, name := range names {
		if strings.HasPrefix(name, "a") {
			all[name].fails("authentication_failed", "401", "Please run /login")
		} else {
			all[name].fails("rate_limit", "429", "You've hit your limit · resets 4am (UTC)")
		}
	}
	w.spends(time.Minute, 10*time.Second)
	if len(w.said) != 2 {
		t.Fatalf("said %q", w.said)
	}
	for _, text := range w.said {
		if strings.Contains(text, "a1") == strings.Contains(text, "b1") {
			t.Errorf("one message with two causes: %q", text)
		}
	}
}
