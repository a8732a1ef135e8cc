package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
)

// A command that works on one prompt is done when it exits 0. One that fails, or whose last word was an error, is not.
func TestAHeadlessCommandThatExits0IsDone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		headless bool
		exit     agentrun.Exit
		declared string
		acts     bool
	}{
		"done":                   {headless: true},
		"failed":                 {headless: true, exit: agentrun.Exit{Code: 1}, acts: true},
		"killed":                 {headless: true, exit: agentrun.Exit{Code: 137, Signal: "killed"}, acts: true},
		"not meant to end":       {headless: true, declared: "expect: {done: {exit: never}}\n", acts: true},
		"done means a manifest":  {headless: true, declared: "expect: {done: {manifest: complete}}\n", acts: true},
		"a terminal, mid-turn":   {acts: true},
		"a terminal, and killed": {exit: agentrun.Exit{Code: 137, Signal: "killed"}, acts: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts+tt.declared))
			c := w.claude("shop", 1001)
			w.process(1000, w.dir("shop"), time.Minute)
			w.reportsOf("shop", 1001, tt.headless, nil)
			c.prompt()
			w.spends(time.Minute, 10*time.Second)
			tt.exit.At = w.wall
			w.reportsOf("shop", 1001, tt.headless, &tt.exit)
			clear(w.living)
			w.spends(10*time.Minute, 30*time.Second)
			if acted := len(w.started) > 0; acted != tt.acts || !tt.acts && len(w.said) != 0 {
				t.Errorf("started %v, said %q", w.started, w.said)
			}
		})
	}
}

// Somebody who leaves an agent at its prompt wants it to end, whatever command could start it again.
func TestAPersonLeaves(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*world, *claude){
		"at rest": func(w *world, c *claude) {
			c.ends("All done.")
			w.spends(time.Minute, 5*time.Second)
		},
		"at rest, between two looks": func(w *world, c *claude) {
			c.ends("All done.")
			w.pass(2 * time.Second)
			w.cycle() // the last look at it: it has been at its prompt for two seconds
			w.pass(4 * time.Second)
		},
		"at rest, just after the machine has slept": func(w *world, c *claude) {
			c.ends("All done.")
			w.spends(time.Minute, 5*time.Second)
			w.sleep(40 * time.Minute)
			w.spends(time.Minute, 5*time.Second)
		},
		"at rest, after /clear": func(w *world, c *claude) {
			c.ends("All done.")
			w.spends(time.Minute, 5*time.Second)
			c.session = "cleared"
			c.writes(`"type":"user","message":{"role":"user","content":"<command-name>/clear</command-name>"}`)
			c.is("idle", "")
			w.spends(time.Minute, 5*time.Second)
		},
		"by its own word": func(w *world, c *claude) {
			err := hooks.Drop(hooks.Dir(w.home), hooks.Event{
				Time: w.wall, Vendor: "claude", Name: "SessionEnd", Session: c.session, Dir: w.dir("shop"), Reason: "prompt_input_exit",
			})
			if err != nil {
				t.Error(err)
			}
			w.cycle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			c := w.claude("shop", 1001)
			w.process(1000, w.dir("shop"), time.Minute)
			w.reports("shop", 1001, nil)
			c.prompt()
			w.cycle()
			leave(w, c)
			w.reports("shop", 1001, &agentrun.Exit{At: w.wall})
			clear(w.living)
			w.spends(12*time.Hour, time.Hour)
			if len(w.started)+len(w.said)+w.interventions() != 0 {
				t.Errorf("started %v, said %q", w.started, w.said)
			}
		})
	}
}

// A person who leaves a session of their own in the agent's folder has not left the agent. It is gone on with when it crashes.
func TestAPersonLeavesAnotherSessionThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	err := hooks.Drop(hooks.Dir(w.home), hooks.Event{
		Time: w.wall, Vendor: "claude", Name: "SessionEnd", Session: "a-persons", Dir: w.dir("shop"), Reason: "prompt_input_exit",
	})
	if err != nil {
		t.Fatal(err)
	}
	w.cycle()
	clear(w.living)
	w.spends(time.Minute, 10*time.Second)
	if rungs := strings.Join(w.rungs(), " "); rungs != "resume" {
		t.Errorf("it has crashed, and it was started by %q; said %q", rungs, w.said)
	}
}

// Whoever wants to know is told once that an agent has finished, or rests; nobody else is.
func TestWhoWantsToKnowOfAnEnd(t *testing.T) {
	t.Parallel()
	run := func(w *world, rests bool, text string) {
		w.process(1000, w.dir("shop"), time.Minute)
		c := w.claude("shop", 1001)
		w.reportsOf("shop", 1001, !rests, nil)
		c.prompt()
		w.spends(time.Minute, 10*time.Second)
		c.ends(text)
		if !rests {
			w.reportsOf("shop", 1001, true, &agentrun.Exit{At: w.wall})
			clear(w.living)
		}
		w.spends(3*time.Hour, 10*time.Minute)
	}
	for name, tt := range map[string]struct {
		head, keys string
		rests      bool
		want       string
	}{
		"off":                     {},
		"off, rests":              {rests: true},
		"finished":                {keys: "notify_done: true\n", want: "✅ shop has finished"},
		"by the defaults":         {head: "defaults: {notify_done: true}\n", want: "✅ shop has finished"},
		"not this one":            {head: "defaults: {notify_done: true}\n", keys: "notify_done: false\n"},
		"rests":                   {keys: "notify_done: true\n", rests: true, want: "⏸ shop rests"},
		"rests with work left":    {keys: "notify_done: true\nexpect: {done: {manifest: complete}}\n", rests: true, want: "⏸ shop rests with work left"},
		"in the quiet hours":      {keys: "notify_done: true\nescalate: {quiet: [\"01:00-09:00\"]}\n", rests: true},
		"when the quiet are over": {keys: "notify_done: true\nescalate: {quiet: [\"01:00-04:00\"]}\n", rests: true, want: "⏸ shop rests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare(tt.head, w.agent("shop", "kind: claude\n"+starts+tt.keys))
			run(w, tt.rests, "I have done what I could.")
			switch {
			case tt.want == "" && len(w.said) > 0, tt.want != "" && len(w.said) != 1:
				t.Fatalf("said %q", w.said)
			case tt.want == "":
				return
			}
			if title, _, _ := strings.Cut(w.said[0], "\n"); title != tt.want {
				t.Errorf("said %q", w.said[0])
			}
			if len(w.started) > 0 {
				t.Errorf("started %v", w.started)
			}
			run(w, tt.rests, "And more.") // the next run is news again
			if len(w.said) != 2 {
				t.Errorf("after another run: %q", w.said)
			}
		})
	}
}

// An agent that finished between two looks, or while no monitor ran, is told of once as well, and not again by the next monitor.
func TestAnEndThatNobodySawComing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nnotify_done: true\n"+starts))
	w.process(1001, w.dir("shop"), time.Minute)
	w.reportsOf("shop", 1001, true, &agentrun.Exit{At: w.wall})
	clear(w.living)
	for range 5 { // each a monitor of its own
		w.pass(time.Minute)
		w.cycle()
	}
	if len(w.said) != 1 {
		t.Errorf("said %q", w.said)
	}
}
