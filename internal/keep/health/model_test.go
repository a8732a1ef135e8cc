package health

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// life draws what befalls a server that is well, or a machine that it runs on.
type life struct {
	rt *rapid.T
	habits
	base   manner // when nothing is the matter
	opts   Options
	script []step
	now    time.Duration
}

func (l *life) between(label string, least, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(l.rt, label))
}

func (l *life) add(after time.Duration, do func(*sim)) {
	l.now += after
	l.script = append(l.script, step{l.now, do})
}

// spell has the server be otherwise for a while.
func (l *life) spell(m manner, least, most time.Duration) {
	l.add(0, becomes(m))
	l.add(l.between("spell", least, most), becomes(l.base))
}

// befalls are the things that happen to healthy servers. Each ends before it returns.
var befalls = map[string]func(*life){
	"idle": func(l *life) { l.add(l.between("idle", 0, 5*time.Hour), func(*sim) {}) },
	"call": func(l *life) {
		d := l.between("call", time.Millisecond, 3*time.Hour)
		l.add(0, calls(d, true, l.progress()))
		l.add(d, func(*sim) {})
	},
	"call that keeps its only thread": func(l *life) {
		d := l.between("call", time.Millisecond, 3*time.Hour)
		l.add(0, calls(d, true, 0))
		l.add(0, becomes(manner{'S', l.share(), true}))
		l.add(d, becomes(l.base))
	},
	"call that is given up, and gone on with": func(l *life) {
		d := l.between("call", time.Millisecond, 5*time.Minute)
		l.add(0, calls(d, false, 0))
		l.add(0, becomes(manner{'S', l.share(), true}))
		l.add(d+l.between("afterwork", 0, afterwork+15*time.Second), becomes(l.base))
	},
	"many calls": func(l *life) {
		for range rapid.IntRange(2, 20).Draw(l.rt, "calls") {
			l.add(l.between("pause", 0, 20*time.Second), calls(l.between("call", time.Millisecond, 2*time.Minute), true, l.progress()))
		}
		l.add(2*time.Minute, func(*sim) {})
	},
	"deaf":       func(l *life) { l.spell(blocked, 0, max(0, 20*time.Second-l.delay)) },
	"busy":       func(l *life) { l.spell(spinning, 0, 3*time.Minute) },
	"half busy":  func(l *life) { l.spell(manner{'S', l.share(), true}, 0, 15*time.Minute) },
	"four cores": func(l *life) { l.spell(manner{'R', 4, true}, 0, 15*time.Minute) },
	"disk":       func(l *life) { l.spell(manner{'D', 0, true}, 0, 3*time.Hour) },
	"starved":    func(l *life) { l.spell(manner{'R', 0, true}, 0, 3*time.Hour) },
	"stopped": func(l *life) {
		l.add(0, becomes(stopped))
		l.add(l.between("stop", 0, time.Hour), becomes(l.base))
	},
	"debugger": func(l *life) { l.spell(debugged, 0, 9*time.Hour) },
	"suspend":  func(l *life) { l.add(0, suspend(l.between("sleep", 3*time.Second, 100*time.Hour))) },
	"clock set back": func(l *life) {
		l.add(0, suspend(-l.between("back", 3*time.Second, 100*time.Hour)))
	},
	"outlive frozen": func(l *life) {
		first := rapid.Bool().Draw(l.rt, "tick first")
		l.add(0, func(s *sim) { s.tickFirst = first })
		d := l.between("freeze", 0, time.Hour)
		l.add(0, freeze(d))
		l.add(d, func(*sim) {})
	},
	"all frozen": func(l *life) {
		d := l.between("freeze", 0, time.Hour)
		l.add(0, freeze(d))
		l.add(0, becomes(blocked))
		l.add(d, becomes(l.base))
	},
	"client does not read": func(l *life) {
		l.add(0, hold(true))
		l.add(0, becomes(blocked))
		l.add(l.between("hold", 0, 5*time.Hour), hold(false))
		l.add(0, becomes(l.base))
	},
}

// share draws a use of CPU time that is neither zero nor one core.
func (l *life) share() float64 {
	return rapid.SampledFrom([]float64{0.01, 0.2, 0.7, 1.5, 6}).Draw(l.rt, "share")
}

func (l *life) progress() time.Duration {
	if rapid.Bool().Draw(l.rt, "progress") {
		return l.between("progress", 100*time.Millisecond, time.Minute)
	}
	return 0
}

// live draws a healthy server's habits and days.
func live(rt *rapid.T, days int) *life {
	l := &life{rt: rt, base: asleep}
	l.delay = l.between("delay", 0, 3*time.Second)
	switch rapid.SampledFrom([]string{"", "no ping", "no probe", "no lists", "slow", "chatty", "unknown"}).Draw(rt, "habit") {
	case "no ping":
		l.ignoresPing = true
	case "no probe":
		l.ignoresPing, l.ignoresLists = true, true
	case "no lists":
		l.ignoresLists = true
	case "slow":
		l.delay, l.base = l.between("delay", 0, 10*time.Minute), manner{'R', 0.3, false}
	case "chatty":
		l.noise = l.between("noise", 100*time.Millisecond, time.Minute)
	case "unknown":
		l.unknown = true
	}
	l.script = append(l.script, step{0, becomes(l.base)})
	if rapid.Bool().Draw(rt, "call timeout") {
		// Longer than any call here that keeps the only thread: the user's word is that longer ones hang.
		l.opts.CallTimeout = 4 * time.Hour
	}
	names := rapid.SampledFrom(sortedNames())
	// A bound on the number, too, because rapid likes short spells.
	for n := 0; n < 20*days && l.now < time.Duration(days)*24*time.Hour; n++ {
		befalls[names.Draw(rt, "befalls")](l)
		// It works for a moment before the next thing, long enough to answer what it was asked.
		l.add(l.delay+l.between("well", time.Second, 3*time.Minute), func(*sim) {})
	}
	return l
}

func sortedNames() []string { return slices.Sorted(maps.Keys(befalls)) }

func TestNoHealthyServerIsCondemned(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := live(rt, 2)
		s := simulate(rt, l.opts, l.habits, l.script...).run(l.now)
		if s.verdict != "" {
			rt.Fatalf("condemned after %s: %s", s.verdictAt, s.verdict)
		}
	})
}

func TestEverySickServerIsCondemned(t *testing.T) {
	silent := func(s *sim) { s.manner, s.ignoresPing, s.ignoresLists = asleep, true, true }
	kinds := map[string]struct {
		falls func(*sim)
		bound time.Duration
	}{
		"silent":    {silent, boundIdle},
		"blocked":   {becomes(blocked), boundIdle},
		"spinning":  {becomes(spinning), boundFull},
		"half busy": {becomes(manner{'S', 0.3, true}), boundSome},
		"stopped":   {func(s *sim) { s.noSIGCONT = true; becomes(stopped)(s) }, boundStopped},
	}
	rapid.Check(t, func(rt *rapid.T) {
		l := live(rt, 1)
		kind := rapid.SampledFrom([]string{"silent", "blocked", "spinning", "half busy", "stopped"}).Draw(rt, "sick")
		if l.unknown || l.ignoresPing && l.ignoresLists && kind == "silent" {
			rt.Skip("nothing tells this server from a healthy one")
		}
		// What is still on its way must not arrive later, and no call may be in flight.
		l.noise = 0
		l.add(time.Hour, kinds[kind].falls)
		sick := l.now
		bound := kinds[kind].bound
		if l.ignoresPing && l.ignoresLists || l.delay >= 2*patience {
			bound += 3 * slowest // rounds failed already before it fell sick, and each next one comes later
		}
		s := simulate(rt, l.opts, l.habits, l.script...)
		s.run(sick + time.Nanosecond)
		s.replies = nil
		s.run(sick + 2*bound)
		if after := s.verdictAt - sick; s.verdict == "" || after > bound {
			rt.Fatalf("%s: verdict %q after %s, want one within %s", kind, s.verdict, after, bound)
		}
	})
}
