package monitor

import (
	"slices"
	"testing"
	"time"
)

// A limit whose reset has only just passed is tried again in minutes, and not on the next day. If it is refused again, the
// next wait is longer.
func TestALimitThatHasPassedIsTriedInMinutes(t *testing.T) {
	t.Parallel()
	const refused = "You've hit your session limit · resets 1:59am (UTC)" // it is after two
	w := newWorld(t)
	w.declare("", w.agent("shop", "kind: claude\nexpect: {attended: 1s}\n"+starts))
	c := w.claude("shop", 1001)
	c.prompt()
	w.cycle()
	w.pass(10 * time.Second)
	c.fails("rate_limit", "429", refused)
	w.spends(4*time.Minute, 30*time.Second)
	if len(w.started) != 0 || len(w.said) != 0 {
		t.Fatalf("after four minutes: started %v, said %q", w.rungs(), w.said)
	}
	w.spends(3*time.Minute, 30*time.Second)
	if !slices.Equal(w.rungs(), []string{"resume"}) {
		t.Fatalf("after seven minutes: started %v, said %q", w.rungs(), w.said)
	}
	again := w.claude("shop", 5001)
	again.prompt()
	w.spends(30*time.Second, 10*time.Second)
	again.fails("rate_limit", "429", refused)
	w.spends(8*time.Minute, 30*time.Second)
	if len(w.started) != 1 {
		t.Fatalf("eight minutes after the second refusal: started %v", w.rungs())
	}
	w.spends(4*time.Minute, 30*time.Second)
	if !slices.Equal(w.rungs(), []string{"resume", "resume"}) {
		t.Errorf("twelve minutes after the second refusal: started %v, said %q", w.rungs(), w.said)
	}
}
