package backoff

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

var t0 = time.Date(2026, 1, 13, 22, 30, 0, 0, time.UTC)

// life drives a tracker as a supervisor would.
type life struct {
	*Tracker
	now time.Time
}

func newLife(p Policy) *life {
	l := &life{Tracker: NewTracker(p), now: t0}
	l.Started(l.now)
	return l
}

// crash ends the process without its having come up, and starts the next one after the delay.
func (l *life) crash(rnd float64) (time.Duration, bool) {
	d, open := l.Crash(l.now, rnd)
	if !open || d > 0 {
		l.now = l.now.Add(d)
		l.Started(l.now)
	}
	return d, open
}

func (l *life) crashes(n int, rnd float64) (delays []time.Duration, open bool) {
	for range n {
		d, o := l.crash(rnd)
		delays, open = append(delays, d), o
	}
	return delays, open
}

// up lets the process be ready for that long.
func (l *life) up(d time.Duration) {
	l.Ready(l.now)
	l.now = l.now.Add(d)
	l.Healthy(l.now)
}

func seconds(s ...float64) (out []time.Duration) {
	for _, x := range s {
		out = append(out, time.Duration(x*float64(time.Second)))
	}
	return out
}

func TestCurves(t *testing.T) {
	limited := Exponential()
	limited.Max = 3 * time.Second
	slow := Transparent()
	slow.FirstAtOnce = false
	for name, c := range map[string]struct {
		policy Policy
		rnd    float64
		want   []time.Duration
	}{
		"transparent": {Transparent(), 0, seconds(0, .25, .5, 1, 2, 4, 8, 16, 30, 30)},
		"transparent, most jitter": {Transparent(), 1 - 1e-9,
			seconds(0, .375, .75, 1.5, 3, 6, 12, 24, 45, 45)},
		"transparent, first one waits": {slow, 0, seconds(.25, .5, 1)},
		"exponential":                  {Exponential(), 0, seconds(1, 2, 4, 8, 16, 32, 60, 60)},
		"exponential, half the jitter": {Exponential(), 0.5, seconds(1.25, 2.5, 5, 10, 20, 40, 75, 75)},
		"exponential, other cap":       {limited, 0, seconds(1, 2, 3, 3)},
		"tiered":                       {Tiered(), 0.9, seconds(1, 1, 1, 5, 5, 5, 5, 5, 5, 5, 10, 10, 10)},
	} {
		t.Run(name, func(t *testing.T) {
			got, open := newLife(c.policy).crashes(len(c.want), c.rnd)
			for i := range got {
				got[i] = got[i].Round(time.Microsecond)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || open {
				t.Errorf("open %v, delays (-want +got):\n%s", open, diff)
			}
		})
	}
}

func TestExponentialNeverOverflows(t *testing.T) {
	p := Exponential()
	p.Max = 0
	l := newLife(p)
	for n := range 500 {
		if d, open := l.crash(0.99); open || d <= 0 {
			t.Fatalf("crash %d: delay %s, open %v", n+1, d, open)
		}
	}
}

func TestHealthyMinuteForgetsFailures(t *testing.T) {
	l := newLife(Transparent())
	l.crashes(4, 0)
	l.up(59 * time.Second)
	if d, _ := l.crash(0); d != 2*time.Second {
		t.Errorf("after 59 s: %s, want the curve to go on with 2s", d)
	}
	l.up(60 * time.Second)
	if d, _ := l.crash(0); d != 0 {
		t.Errorf("after a healthy minute: %s, want at once", d)
	}
	if d, _ := l.crash(0); d != 250*time.Millisecond {
		t.Errorf("the next: %s, want 250ms", d)
	}
}

func TestHealthCountsFromReadyWithoutABreak(t *testing.T) {
	l := newLife(Exponential())
	l.crashes(3, 0)
	l.now = l.now.Add(time.Hour) // alive, never ready
	if d, _ := l.crash(0); d != 8*time.Second {
		t.Errorf("an hour without readiness: %s, want 8s", d)
	}
	l.up(50 * time.Second)
	l.Unready()
	l.up(50 * time.Second)
	if d, _ := l.crash(0); d != 16*time.Second {
		t.Errorf("twice 50 s: %s, want 16s", d)
	}
}

func TestLateHealthyTimerDoesNotMatter(t *testing.T) {
	l := newLife(Exponential())
	l.crashes(3, 0)
	l.Ready(l.now)
	l.now = l.now.Add(61 * time.Second)
	if d, _ := l.crash(0); d != time.Second {
		t.Errorf("got %s, want 1s", d)
	}
}

func TestTieredNeverForgets(t *testing.T) {
	l := newLife(Tiered())
	l.crashes(3, 0)
	l.up(24 * time.Hour)
	if d, _ := l.crash(0); d != 5*time.Second {
		t.Errorf("got %s, want 5s", d)
	}
}

func TestTieredCountsRequestedRestarts(t *testing.T) {
	l := newLife(Tiered())
	for range 3 {
		d, _ := l.Requested(l.now)
		l.now = l.now.Add(d + 10*time.Second)
		l.Started(l.now)
	}
	if d, _ := l.crash(0); d != 5*time.Second || l.Restarts() != 4 {
		t.Errorf("got %s at restart %d, want 5s at 4", d, l.Restarts())
	}
}

func TestBreakerOpensAfterTenRestartsAndDoubles(t *testing.T) {
	l := newLife(Transparent())
	if _, open := l.crashes(10, 0); open {
		t.Fatal("ten restarts are allowed")
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 15, 15} {
		d, open := l.crash(0)
		if !open || d != want*time.Minute {
			t.Fatalf("got %s, open %v; want %d min, open", d, open, want)
		}
	}
	l.Ready(l.now)
	if l.breaker != closed {
		t.Error("open although it came up")
	}
	l.up(time.Minute)
	if l.crashes(9, 0); l.breaker != closed {
		t.Fatal("with the try itself these are ten restarts, which are allowed")
	}
	if d, open := l.crash(0); !open || d != time.Minute {
		t.Errorf("got %s, open %v; want the interval to begin anew with 1 min", d, open)
	}
}

func TestCrashSoonAfterTheTryOpensForTwiceAsLong(t *testing.T) {
	l := newLife(Transparent())
	l.crashes(11, 0) // the last one waits a minute
	l.up(5 * time.Second)
	if d, open := l.crash(0); !open || d != 2*time.Minute {
		t.Errorf("got %s, open %v; want 2 min, open", d, open)
	}
}

func TestResetClosesTheBreaker(t *testing.T) {
	l := newLife(Transparent())
	l.crashes(10, 0)
	if _, open := l.Crash(l.now, 0); !open {
		t.Fatal("not open")
	}
	l.Reset()
	if l.breaker != closed {
		t.Error("still open")
	}
	l.Requested(l.now)
	l.Started(l.now)
	if got := l.Restarts(); got != 11 {
		t.Errorf("lifetime %d, want 11", got)
	}
	if d, open := l.crash(0); d != 0 || open {
		t.Errorf("got %s, open %v; want a first crash", d, open)
	}
}

func TestMaxRestartsWithoutWindowEndsForGood(t *testing.T) {
	p := Exponential()
	p.MaxRestarts = 3
	l := newLife(p)
	if _, open := l.crashes(3, 0); open {
		t.Fatal("three restarts are allowed")
	}
	if d, open := l.crash(0); !open || d != 0 {
		t.Errorf("got %s, open %v; want open for good", d, open)
	}
	if l.Restarts() != 3 {
		t.Errorf("lifetime %d, want 3", l.Restarts())
	}
	l = newLife(p)
	l.crashes(3, 0)
	l.up(time.Minute)
	if _, open := l.crash(0); open {
		t.Error("a healthy minute resets the count")
	}
}

func TestRequestedWaitsOnlyTheRemainingTime(t *testing.T) {
	// Several wishes within one second (WD-11).
	type answer struct {
		Delay     time.Duration
		Throttled bool
	}
	l := newLife(Transparent())
	var got []answer
	for _, at := range []time.Duration{0, 100, 1100, 301_000} {
		l.now = t0.Add(at * time.Millisecond)
		d, throttled := l.Requested(l.now)
		l.now = l.now.Add(d)
		l.Started(l.now)
		got = append(got, answer{d, throttled})
	}
	want := []answer{{0, false}, {900 * time.Millisecond, true}, {900 * time.Millisecond, true}, {0, false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCrashesDoNotCountForTheFloor(t *testing.T) {
	l := newLife(Transparent())
	l.crash(0)
	if d, throttled := l.Requested(l.now); d != 0 || throttled {
		t.Errorf("got %s, throttled %v", d, throttled)
	}
}

func TestTieredPausesBeforeARequestedRestart(t *testing.T) {
	l := newLife(Tiered())
	if d, throttled := l.Requested(l.now); d != 500*time.Millisecond || throttled {
		t.Errorf("first: %s, throttled %v", d, throttled)
	}
	l.Started(l.now.Add(500 * time.Millisecond))
	l.now = l.now.Add(510 * time.Millisecond)
	if d, throttled := l.Requested(l.now); d != 990*time.Millisecond || !throttled {
		t.Errorf("second: %s, throttled %v; want 490 ms to the floor and 500 ms pause", d, throttled)
	}
}

func TestRequestInPlaceOfAWaitingRestartCountsOnce(t *testing.T) {
	l := newLife(Exponential())
	l.Crash(l.now, 0)
	l.Requested(l.now)
	l.Started(l.now)
	if l.Restarts() != 1 {
		t.Errorf("lifetime %d, want 1", l.Restarts())
	}
	l.Requested(l.now)
	if l.Restarts() != 2 {
		t.Errorf("lifetime %d, want 2", l.Restarts())
	}
}

// drawPolicy draws a preset with changes that Validate lets pass.
func drawPolicy(rt *rapid.T) Policy {
	p := rapid.SampledFrom(presets()).Draw(rt, "preset")
	if rapid.Bool().Draw(rt, "limited") {
		p.MaxRestarts = rapid.IntRange(1, 6).Draw(rt, "max")
		p.Window = time.Duration(rapid.IntRange(0, 900).Draw(rt, "window")) * time.Second
		p.OpenFor = time.Duration(rapid.IntRange(0, 90).Draw(rt, "open")) * time.Second
		p.OpenMax = 0
	}
	if p.Validate() != nil {
		rt.Skip("unreachable")
	}
	return p
}

func TestDelaysStayWithinCurveAndJitter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPolicy(rt)
		p.MaxRestarts = 0
		l := newLife(p)
		failures := 0
		for range rapid.IntRange(1, 40).Draw(rt, "crashes") {
			if rapid.Bool().Draw(rt, "came up") {
				up := time.Duration(rapid.IntRange(0, 120).Draw(rt, "up")) * time.Second
				l.up(up)
				if p.ResetAfter > 0 && up >= p.ResetAfter {
					failures = 0
				}
			}
			failures++
			base := p.curve(failures, l.Restarts()+1)
			d, open := l.crash(rapid.Float64Range(0, 0.999999).Draw(rt, "rnd"))
			if open || d < base || d > base+time.Duration(p.Jitter*float64(base)) {
				rt.Fatalf("delay %s, open %v, after %d failures; curve %s", d, open, failures, base)
			}
		}
	})
}

func TestNeverMoreThanTheBudgetInAnyWindow(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPolicy(rt)
		if p.MaxRestarts == 0 || p.Window == 0 {
			rt.Skip("no budget")
		}
		l := newLife(p)
		var restarts []time.Time // while the breaker was closed
		for range rapid.IntRange(1, 60).Draw(rt, "crashes") {
			if rapid.Bool().Draw(rt, "came up") {
				l.up(time.Duration(rapid.IntRange(0, 200).Draw(rt, "up")) * time.Second)
			}
			d, open := l.Crash(l.now, rapid.Float64Range(0, 0.999999).Draw(rt, "rnd"))
			if open && d == 0 {
				return
			}
			l.now = l.now.Add(d)
			l.Started(l.now)
			if open {
				continue
			}
			restarts = append(restarts, l.now)
			if n := len(restarts) - 1 - p.MaxRestarts; n >= 0 && l.now.Sub(restarts[n]) < p.Window {
				rt.Fatalf("%d restarts within %s", p.MaxRestarts+1, l.now.Sub(restarts[n]))
			}
		}
	})
}
