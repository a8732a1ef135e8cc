package monitor

import (
	"slices"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// paused is a night in which a virtual machine did not run. Its clock is set then, and its processes have not become older.
func (w *world) paused(d time.Duration) { w.wall = w.wall.Add(d) }

// What an agent did before its machine was paused is not of a run before. Its model does not answer, and its session is gone on with. It
// was called at rest, for ever.
func TestASilentModelAfterAPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {attended: 1s}\n"+starts))
	c := w.claude("shop", 1001)
	w.cycle()
	w.pass(5 * time.Minute)
	c.prompt()
	w.cycle()
	w.paused(8 * time.Hour)
	w.spends(5*time.Minute, time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.AtWork || len(w.started)+len(w.stopped) != 0 {
		t.Fatalf("its model was asked 5 minutes ago, and it is called %s: %s; started %v", v.Class, v.Details, w.rungs())
	}
	w.spends(7*time.Minute, time.Minute)
	if rungs := w.rungs(); !slices.Equal(rungs, []string{"resume"}) {
		v := w.diagnosis()
		t.Errorf("its model is silent, and it was started by %q; it is called %s: %s", rungs, v.Class, v.Details)
	}
}

// A tool that hangs after a pause is ended, and not the servers that the agent had started before.
func TestAHungToolAfterAPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {attended: 1s}\n"+starts))
	c := w.claude("shop", 1001)
	w.process(1002, "/", 0)
	w.parents[1002], w.args[1002] = 1001, []string{"mcp-server"}
	w.cycle()
	w.pass(5 * time.Minute)
	c.prompt()
	c.tool("Bash", `"command":"curl example.com"`)
	w.process(1003, "/", 0)
	w.parents[1003], w.args[1003] = 1001, []string{"curl"}
	w.cycle()
	w.paused(8 * time.Hour)
	w.spends(34*time.Minute, time.Minute)
	if !slices.Equal(w.stopped, []int{1003}) {
		t.Errorf("ended %v, and 1003 is its tool", w.stopped)
	}
}

// A clock that was set back again makes no process older than it is.
func TestAClockThatIsSetForwardAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"))
	w.cycle()
	w.wall = w.wall.Add(8 * time.Hour)
	w.cycle()
	w.wall = w.wall.Add(-8 * time.Hour)
	w.cycle()
	w.pass(9 * time.Hour)
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	w.pass(time.Minute)
	view, err := Inspect(t.Context(), w.opts)
	if err != nil {
		t.Fatal(err)
	}
	if age := view.Findings[0].Evidence.Process.Age; age != diagnose.Span(time.Minute) {
		t.Errorf("its process was started a minute ago, and not %s", age)
	}
}
