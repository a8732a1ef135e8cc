package supervise

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRetirement goes through whole lives: what happens when, and the letters of what is done about it.
func TestRetirement(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	type step struct {
		at   time.Duration
		what string // begin, drained, hurry or left (its client has; both 600 ms), or tick
		want string
		next time.Duration // the deadline after it; 0: none
	}
	for name, c := range map[string]struct {
		opts  Options
		busy  bool
		steps []step
	}{
		"nothing in flight": {Options{}, false, []step{
			{0, "begin", "IT", 2 * s}, {s, "drained", "", 2 * s}, {2*s - 1, "tick", "", 2 * s}, {2 * s, "tick", "K", 0},
			{3 * s, "hurry", "", 0}, {4 * s, "tick", "", 0}, {4 * s, "drained", "", 0},
		}},
		"it finishes": {Options{}, true, []step{
			{0, "begin", "D", 600 * s}, {50 * s, "tick", "", 600 * s}, {90 * s, "drained", "IT", 92 * s}, {92 * s, "tick", "K", 0},
		}},
		"it does not finish": {Options{RetireFor: time.Minute}, true, []step{
			{0, "begin", "D", 60 * s}, {60 * s, "tick", "IT", 62 * s}, {61 * s, "drained", "", 62 * s}, {62 * s, "tick", "K", 0},
		}},
		"hurry while it finishes": {Options{}, true, []step{
			{0, "begin", "D", 600 * s}, {s, "hurry", "IT", s + 600*ms}, {s + 600*ms, "tick", "K", 0},
		}},
		"hurry after it was asked to go": {Options{}, false, []step{
			{0, "begin", "IT", 2 * s}, {s, "hurry", "", s + 600*ms}, {s + 600*ms, "tick", "K", 0},
		}},
		"it had not come up": {Options{InstallGrace: 30 * s}, false, []step{
			{0, "begin", "IT", 30 * s}, {29 * s, "tick", "", 30 * s}, {30 * s, "tick", "K", 0},
		}},
		"its client leaves while it installs": {Options{InstallGrace: 30 * s}, false, []step{
			{0, "begin", "IT", 30 * s}, {s, "left", "", 30 * s}, {30 * s, "tick", "K", 0},
		}},
		"outlive is to end while it installs": {Options{InstallGrace: 30 * s}, false, []step{
			{0, "begin", "IT", 30 * s}, {s, "left", "", 30 * s}, {2 * s, "hurry", "", 2*s + 600*ms}, {2*s + 600*ms, "tick", "K", 0},
		}},
		"its client leaves after it had come up": {Options{}, false, []step{
			{0, "begin", "IT", 2 * s}, {s, "left", "", s + 600*ms}, {s + 600*ms, "tick", "K", 0},
		}},
		"hurry does not slow down": {Options{}, false, []step{
			{0, "begin", "IT", 2 * s}, {1900 * ms, "hurry", "", 2 * s}, {2 * s, "tick", "K", 0},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewRetirement(7, c.opts, t0, c.opts.InstallGrace == 0, c.busy)
			for _, step := range c.steps {
				now := t0.Add(step.at)
				var got []Action
				switch step.what {
				case "begin":
					got = r.Begin()
				case "drained":
					got = r.Drained(now)
				case "hurry":
					got = r.Hurry(now, Signal, 600*ms)
				case "left":
					got = r.Hurry(now, ClientEOF, 600*ms)
				case "tick":
					got = r.Tick(now)
				}
				due := time.Duration(0)
				if !r.Deadline().IsZero() {
					due = r.Deadline().Sub(t0)
				}
				if letters(got) != step.want || due != step.next {
					t.Fatalf("%s at %s: did %q, next in %s; want %q, %s", step.what, step.at, letters(got), due, step.want, step.next)
				}
			}
		})
	}
}

func TestRetirementIsAboutOneProcessAndGivesItsActionsAway(t *testing.T) {
	r := NewRetirement(7, Options{}, t0, true, true)
	first := r.Begin()
	second := r.Drained(t0) // what the owner does about the first may lead here
	if diff := cmp.Diff([]Action{BeginDrain{7}}, first); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Action{CloseStdin{7}, Terminate{7}}, second); diff != "" {
		t.Errorf("second (-want +got):\n%s", diff)
	}
	if again := r.Begin(); len(again) > 0 {
		t.Errorf("it began twice: %v", again)
	}
}
