package recovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 3, 2, 2, 0, 0, 0, time.UTC)

// pivCase is what PIV's decision goes by.
type pivCase struct {
	class, stall string
	phase        int
	acts         []Act
	open, held   bool
	blind        int
	restarts     int
	pace         time.Duration
}

// pivDecides is PIV-5 to PIV-8 written down once more, as plainly as
// it is said there.
func pivDecides(c pivCase, now time.Time) (action string, used, most int) {
	if c.stall == "" {
		return "skip", 0, 0
	}
	count := func(window time.Duration, phase bool) (n int) {
		for _, a := range c.acts {
			if !a.Refunded && a.Stall == c.stall && (!phase || a.Phase == c.phase) && now.Sub(a.At) < window {
				n++
			}
		}
		return n
	}
	action = "escalate"
	switch c.stall {
	case stallCrashed:
		if used, most = count(time.Hour, false), max(5, c.restarts); used < most {
			action = "restart"
		}
	case stallHung, stallWaiting:
		if used, most = count(24*time.Hour, true), c.restarts-1; used < most {
			action = map[string]string{stallHung: "restart", stallWaiting: "restart_with_preamble"}[c.stall]
		}
	case stallBlind:
		if c.class == "lost" || c.blind < 3 {
			return "skip", 0, 0
		}
	}
	var last time.Time
	for _, a := range c.acts {
		if !a.Refunded {
			last = a.At
		}
	}
	switch {
	case action == "escalate" && c.open, action != "escalate" && c.held:
		action = "skip"
	case !last.IsZero() && now.Sub(last) < c.pace && !now.Before(last):
		action = "skip"
	}
	return action, used, most
}

// Whatever happened before, PIV's preset decides as PIV does, and counts as it does.
func TestPIVPresetIsPIV(t *testing.T) {
	seen := map[string]int{}
	one := func(t *rapid.T) {
		c := pivCase{
			stall:    rapid.SampledFrom([]string{stallCrashed, stallHung, stallWaiting, stallErrored, stallBlind, ""}).Draw(t, "stall"),
			phase:    rapid.IntRange(1, 2).Draw(t, "phase"),
			open:     rapid.Bool().Draw(t, "open"),
			held:     rapid.Float64Range(0, 1).Draw(t, "held") < 0.2,
			blind:    rapid.IntRange(0, 4).Draw(t, "blind"),
			restarts: rapid.IntRange(1, 7).Draw(t, "restarts"),
			pace:     rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "pace"),
		}
		classes := map[string][]string{
			stallCrashed: {"crashed", "exited_unfinished"}, stallHung: {"heartbeat_lost", "model_silent"},
			stallWaiting: {"waiting_question", "waiting_permission", "startup_blocked"},
			stallErrored: {"execution_error", "human_required"}, stallBlind: {"unsure", "lost", "manifest"}, "": {""},
		}
		c.class = rapid.SampledFrom(classes[c.stall]).Draw(t, "class")
		now := t0
		for range rapid.IntRange(0, 8).Draw(t, "acts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2400).Draw(t, "gap")) * time.Second)
			stall := rapid.SampledFrom([]string{stallCrashed, stallHung, stallWaiting}).Draw(t, "act")
			c.acts = append(c.acts, Act{
				Agent: "shop", At: now, Rung: Restart, Stall: stall, Class: classes[stall][0],
				Phase: rapid.IntRange(1, 2).Draw(t, "act phase"), Refunded: rapid.IntRange(0, 9).Draw(t, "refunded") == 0,
				Deadline: now,
			})
		}
		now = now.Add(time.Duration(rapid.IntRange(-60, 9000).Draw(t, "last gap")) * time.Second)
		p := Problem{Agent: "shop", Class: c.class, Stall: c.stall, Phase: c.phase, Since: now.Add(-time.Hour),
			Confidence: rapid.SampledFrom([]string{"high", "medium", "low"}).Draw(t, "confidence")}
		h := History{Acts: c.acts, Open: c.open, Held: c.held, Blind: c.blind}
		d := Decide(p, h, PIV(c.restarts, c.pace), PIVCapabilities(), Fleet{}, now)
		action, used, most := pivDecides(c, now)
		if got := d.PIVAction(); got != action || d.Budget.Used != used || d.Budget.Max != most {
			t.Fatalf("%s %d/%d (%s), want %s %d/%d", got, d.Budget.Used, d.Budget.Max, d.Reason, action, used, most)
		}
		seen[action]++
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			one(t)
		}
	})
	if len(seen) != 4 {
		t.Errorf("only %v were decided: the test does not see everything", seen)
	}
}

// PIV-6 and PIV-7: the third question and the third hang of a phase go to a human, a new phase begins anew, a crash has
// five restarts an hour.
func TestPIVOccurrences(t *testing.T) {
	for _, c := range []struct {
		stall string
		want  []string
	}{
		{stallWaiting, []string{"restart_with_preamble", "restart_with_preamble", "escalate", "skip"}},
		{stallHung, []string{"restart", "restart", "escalate", "skip"}},
		{stallErrored, []string{"escalate", "skip", "skip"}},
		{stallCrashed, []string{"restart", "restart", "restart", "restart", "restart", "escalate", "skip"}},
	} {
		t.Run(c.stall, func(t *testing.T) {
			var got []string
			var preambles []Preamble
			h, now := History{}, t0
			for range c.want {
				p := Problem{Agent: "shop", Class: "x", Stall: c.stall, Phase: 3, Confidence: "high", Since: now}
				d := Decide(p, h, PIV(3, time.Minute), PIVCapabilities(), Fleet{}, now)
				got = append(got, d.PIVAction())
				switch {
				case d.Rung.Starts():
					h.Acts = append(h.Acts, d.Act(p, now))
					preambles = append(preambles, d.Preamble)
				case d.Rung == Escalate:
					h.Open = true
				}
				now = now.Add(2 * time.Minute)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			if c.stall == stallWaiting && cmp.Diff([]Preamble{Autonomous, NoQuestions}, preambles) != "" {
				t.Errorf("preambles %q", preambles)
			}
			p := Problem{Agent: "shop", Class: "x", Stall: c.stall, Phase: 4, Confidence: "high"}
			h.Open = false
			next := Decide(p, h, PIV(3, time.Minute), PIVCapabilities(), Fleet{}, now).PIVAction()
			if want := c.want[0]; c.stall != stallCrashed && next != want {
				t.Errorf("in the next phase: %s, want %s", next, want)
			}
		})
	}
}
