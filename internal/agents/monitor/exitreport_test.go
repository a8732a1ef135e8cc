package monitor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// atWorkHeadless is a world in which a headless command, the process 1001, has worked on its prompt for a minute behind its wrapper.
func atWorkHeadless(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001).headless()
	w.process(1000, w.dir("shop"), 0)
	w.reportsOf("shop", 1001, true, nil)
	c.prompt()
	w.spends(time.Minute, 10*time.Second)
	return w
}

// A process has ended, and its wrapper lives and has not said how: it is asked again before anything is decided.
func TestAnEndThatItsWrapperHasYetToReport(t *testing.T) {
	t.Parallel()
	report := func(w *world, exit agentrun.Exit) {
		exit.At = w.wall
		w.reportsOf("shop", 1001, true, &exit)
	}
	for name, tt := range map[string]struct {
		then  func(w *world)
		rungs []string
		class diagnose.Class // at the end; "": whatever follows a start
	}{
		"then it says that all is well": {then: func(w *world) { report(w, agentrun.Exit{}) }, class: diagnose.Done},
		"then it says that it failed":   {then: func(w *world) { report(w, agentrun.Exit{Code: 1}) }, rungs: []string{"resume"}},
		"then it is killed, too":        {then: func(w *world) { delete(w.living, 1000) }, rungs: []string{"resume"}},
		"it never says":                 {then: func(*world) {}, rungs: []string{"resume"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := atWorkHeadless(t)
			delete(w.living, 1001)
			w.spends(6*time.Second, 3*time.Second)
			if v := w.diagnosis(); v.Class != diagnose.Grace || len(w.started)+len(w.said) > 0 {
				t.Fatalf("its wrapper has yet to say how it ended: %s (%s), started %v, said %q", v.Class, v.Details, w.rungs(), w.said)
			}
			tt.then(w)
			w.spends(20*time.Second, 4*time.Second)
			if !slices.Equal(w.rungs(), tt.rungs) {
				t.Errorf("started %v, want %v; %s", w.rungs(), tt.rungs, w.read("improvement-log.md"))
			}
			if v := w.diagnosis(); tt.class != "" && (v.Class != tt.class || len(w.said) > 0) {
				t.Errorf("%s (%s), want %s; said %q", v.Class, v.Details, tt.class, w.said)
			}
		})
	}
}

// A limit that its owner has set ends claude -p with the status of any error. To go on with it would defy that limit.
func TestACommandThatEndsAtALimitOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failed string
		last   []string
		rungs  []string
		class  diagnose.Class // "": whatever follows a start
	}{
		"of turns":              {last: []string{"a warning", "Error: Reached max turns (3)"}, class: diagnose.BudgetExceeded},
		"of money":              {last: []string{"Error: Exceeded USD budget (0.5)"}, class: diagnose.BudgetExceeded},
		"of turns, as JSON":     {failed: "error_max_turns", class: diagnose.BudgetExceeded},
		"of money, as JSON":     {failed: "error_max_budget_usd", class: diagnose.BudgetExceeded},
		"of tries, as JSON":     {failed: "error_max_structured_output_retries", rungs: []string{"resume"}},
		"it has written of one": {last: []string{"Error: Reached max turns (3)", "Execution error"}, rungs: []string{"resume"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := atWorkHeadless(t)
			delete(w.living, 1001)
			w.reportIs("shop", func(r *agentrun.Report) {
				r.Headless, r.Failed, r.LastLines, r.Exit = true, tt.failed, tt.last, &agentrun.Exit{Code: 1, At: w.wall}
			})
			w.spends(24*time.Second, 4*time.Second)
			if v := w.diagnosis(); !slices.Equal(w.rungs(), tt.rungs) || tt.class != "" && v.Class != tt.class {
				t.Errorf("%s (%s), started %v; want %s, %v", v.Class, v.Details, w.rungs(), tt.class, tt.rungs)
			}
		})
	}
}

// The wrapper reports between the reading of the reports and the look at the process.
func TestAReportThatComesDuringALook(t *testing.T) {
	t.Parallel()
	w := atWorkHeadless(t)
	delete(w.living, 1001)
	asked := false
	w.onLook = func(pid int) {
		if pid == 1001 && !asked {
			asked = true
			w.reportsOf("shop", 1001, true, &agentrun.Exit{At: w.wall})
		}
	}
	w.cycle()
	if !asked {
		t.Fatal("nobody has looked at the process")
	}
	if len(w.started)+len(w.said)+w.interventions() != 0 {
		t.Errorf("started %v, said %q", w.rungs(), w.said)
	}
	if v := w.diagnosis(); v.Class != diagnose.Done || !strings.Contains(v.Details, "exited 0") {
		t.Errorf("%s (%s)", v.Class, v.Details)
	}
}

// A process ends, and its wrapper reports that, after the table of processes was read: no contradiction.
func TestAnEndAfterTheTableWasRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ends bool
		want diagnose.Class
	}{"it has ended": {true, diagnose.Done}, "it lives": {false, diagnose.Contradiction}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := atWorkHeadless(t)
			w.reportsOf("shop", 1001, true, &agentrun.Exit{At: w.wall})
			seen := false // while the table is read
			w.onLook = func(pid int) {
				if pid == 1001 && tt.ends && seen {
					delete(w.living, 1001)
				}
				seen = seen || pid == 1001
			}
			w.cycle()
			if v := w.diagnosis(); v.Class != tt.want {
				t.Errorf("%s (%s), want %s", v.Class, v.Details, tt.want)
			}
			if len(w.started)+len(w.said) != 0 {
				t.Errorf("started %v, said %q", w.rungs(), w.said)
			}
		})
	}
}

// A headless command whose turn is over and that does not exit is done or hangs. Nobody ends it, and whoever does ends nothing that
// would have to be gone on with.
func TestAHeadlessCommandThatHangsAtItsEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		declared string
		class    diagnose.Class
		told     bool
	}{
		"done":                       {class: diagnose.Done},
		"its owner wants its exit":   {declared: "expect: {done: {exit: 0}}\n", class: diagnose.NoProgress, told: true},
		"its owner wants a manifest": {declared: "expect: {done: {manifest: complete}}\n", class: diagnose.NoProgress, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts+tt.declared))
			c := w.claude("shop", 1001).headless()
			w.process(1000, w.dir("shop"), 0)
			w.reportsOf("shop", 1001, true, nil)
			c.prompt()
			w.pass(time.Minute)
			c.ends("All is done.")
			w.spends(29*time.Minute, time.Minute)
			if v := w.diagnosis(); v.Class != diagnose.Idle {
				t.Fatalf("only just at its end: %s (%s)", v.Class, v.Details)
			}
			w.spends(3*time.Minute, time.Minute)
			if v := w.diagnosis(); v.Class != tt.class || !strings.Contains(v.Details, "it hangs") {
				t.Errorf("%s (%s), want %s", v.Class, v.Details, tt.class)
			}
			if (len(w.said) > 0) != tt.told || len(w.stopped)+len(w.started)+len(w.interrupted) > 0 {
				t.Errorf("said %q, ended %v, started %v", w.said, w.stopped, w.rungs())
			}
			if tt.told {
				return
			}
			w.reportsOf("shop", 1001, true, &agentrun.Exit{Code: 137, Signal: "killed", At: w.wall}) // by a person
			clear(w.living)
			w.spends(10*time.Minute, time.Minute)
			if len(w.said)+len(w.started) > 0 {
				t.Errorf("its work was done, and it was ended: said %q, started %v", w.said, w.rungs())
			}
		})
	}
}

// A script that runs such a command again and again waits for it: its work is not done, and somebody has to know.
func TestAScriptWhoseCommandHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	w.process(1000, w.dir("shop"), 0)
	w.process(1001, w.dir("shop"), 0)
	w.args[1001] = []string{"bash", "loop.sh"}
	c := w.claude("shop", 1002).headless()
	w.parents[1002] = 1001
	w.reports("shop", 1001, nil)
	c.prompt()
	w.pass(time.Minute)
	c.ends("All is done.")
	w.spends(33*time.Minute, time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.NoProgress || !strings.Contains(v.Details, "it hangs") {
		t.Errorf("%s (%s)", v.Class, v.Details)
	}
	if len(w.said) == 0 || len(w.stopped)+len(w.started)+len(w.interrupted) > 0 {
		t.Errorf("said %q, ended %v, started %v", w.said, w.stopped, w.rungs())
	}
}
