package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// A CLI that is told to write no transcript says of itself only that it is busy. That counts as long as a tool may run, and for as long
// as what it has started works; then a person is told, once, and nothing is ended: it may work all the same.
func TestBusyAndNothingBearsItOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\n"+starts))
	c := w.claude("shop", 1001).headless()
	c.is("busy", "")
	w.process(1002, w.dir("shop"), 0)
	w.parents[1002], w.args[1002] = 1001, []string{"make"}
	for left := 90; left > 0; left -= runLength { // a build of an hour and a half
		w.cycles(min(left, runLength), func() {
			w.pass(time.Minute)
			w.used[1002] += 10 * time.Second
		})
	}
	if v := w.diagnosis(); v.Class != diagnose.AtWork || len(w.said) != 0 {
		t.Fatalf("its build uses the processor, and it is called %s: %s; said %q", v.Class, v.Details, w.said)
	}
	delete(w.living, 1002)
	w.spends(28*time.Minute, time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.AtWork || len(w.said) != 0 {
		t.Fatalf("it has worked 28 minutes ago, and is called %s: %s; said %q", v.Class, v.Details, w.said)
	}
	w.spends(25*time.Minute, time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.NoEvidence || !strings.Contains(v.Details, "nothing bears that out") {
		t.Errorf("nothing shows that it works, and it is called %s: %s", v.Class, v.Details)
	}
	if len(w.said) != 1 {
		t.Errorf("told %q", w.said)
	}
	w.spends(8*time.Hour, 10*time.Minute)
	if len(w.stopped)+len(w.started)+len(w.interrupted) != 0 {
		t.Errorf("it is not known whether it works: stopped %v, started %v, interrupted %v", w.stopped, w.started, w.interrupted)
	}
	c.ends("All done.")
	w.spends(5*time.Minute, time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.Idle {
		t.Errorf("its turn is over, and it is called %s: %s", v.Class, v.Details)
	}
}

// A reviewer that hangs, and writes no transcript, does not keep its agent's trouble from being mended for ever.
func TestANestedCLIThatOnlySaysThatItIsBusy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {attended: 1s}\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	c.tool("Bash", `"command":"claude -p --no-session-persistence review"`)
	reviewer := &claude{w: w, pid: 1002, name: "shop", session: "review"}
	w.process(1002, w.dir("shop"), 0)
	w.parents[1002], w.args[1002] = 1001, []string{"claude", "-p", "--no-session-persistence", "review"}
	reviewer.is("busy", "")
	w.spends(25*time.Minute, time.Minute)
	if v := w.diagnosis(); v.Class != diagnose.AtWork {
		t.Fatalf("the reviewer may be at work, and the agent is called %s: %s", v.Class, v.Details)
	}
	w.spends(10*time.Minute, time.Minute)
	if len(w.stopped) == 0 {
		v := w.diagnosis()
		t.Errorf("the reviewer hangs, and nothing is ended: the agent is called %s: %s", v.Class, v.Details)
	}
}
