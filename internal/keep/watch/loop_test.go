package watch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// Whatever happens when: one series is over when it was quiet long enough, at the latest after the limit, and every event
// is part of a series.
func TestDebounceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := debounce{quiet: ms(200), limit: ms(2000), hold: ms(10000)}
		now := time.Unix(1e9, 0)
		var first, last time.Time
		open, held := false, false
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(ms(rapid.IntRange(0, 400).Draw(t, "later")))
			if at, ok := d.due(); ok != open {
				t.Fatalf("active is %v, want %v", ok, open)
			} else if ok && !now.Before(at) {
				isHeld := rapid.Bool().Draw(t, "held")
				over := d.over(now, isHeld)
				switch {
				case over && now.Sub(last) < ms(200) && now.Sub(first) < ms(2000):
					t.Fatal("over too early")
				case !over && !isHeld:
					t.Fatal("due, but not over")
				case !over && now.Sub(first) >= ms(10000):
					t.Fatal("held for ever")
				}
				open, held = !over, held || isHeld
			}
			if rapid.Bool().Draw(t, "event") {
				d.touch(now)
				if !open {
					open, first, held = true, now, false
				}
				last = now
			}
			if at, ok := d.due(); ok && at.Sub(first) > ms(2000) && !held {
				t.Fatal("due after the limit")
			}
		}
	})
}

// script drives a loop on a false clock and notes when it settled and polled, in ms from the start.
type script struct {
	settled, polledAt []int
	held              func(at int) bool
	polledDirs        bool
	pollTakes         time.Duration
	pollFinds         map[int]bool // by how many polls there were
}

func (s *script) run(t *testing.T, eventsAt []int, until int) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at := func() int { return int(time.Since(start) / time.Millisecond) }
		events, stop, done := make(chan fsnotify.Event), make(chan struct{}), make(chan struct{})
		l := loop{
			debounce: debounce{quiet: ms(200), limit: ms(2000), hold: ms(10000)}, interval: ms(2000), events: events, stop: stop,
			do: callbacks{
				note: func(e fsnotify.Event) bool { return e.Name != "noise" },
				lost: func() {},
				poll: func() bool {
					s.polledAt = append(s.polledAt, at())
					time.Sleep(s.pollTakes)
					return s.pollFinds[len(s.polledAt)]
				},
				polled: func() bool { return s.polledDirs },
				held:   func(time.Time) bool { return s.held != nil && s.held(at()) },
				settle: func() { s.settled = append(s.settled, at()) },
			},
		}
		go func() { defer close(done); l.run() }()
		for _, when := range eventsAt {
			time.Sleep(time.Until(start.Add(ms(max(when, -when)))))
			e := fsnotify.Event{Name: "file"}
			if when < 0 {
				e.Name = "noise"
			}
			events <- e
		}
		time.Sleep(time.Until(start.Add(ms(until))))
		close(stop)
		<-done
	})
}

func every(step, from, to int) []int {
	var all []int
	for at := from; at <= to; at += step {
		all = append(all, at)
	}
	return all
}

func TestLoop(t *testing.T) {
	for _, tc := range []struct {
		name    string
		script  script
		events  []int // negative: one that does not matter
		until   int
		settled []int
		polled  []int
	}{
		{"nothing", script{}, nil, 60_000, nil, nil},
		{"one event", script{}, []int{100}, 5000, []int{300}, nil},
		{"many are one", script{}, every(50, 100, 1000), 5000, []int{1200}, nil},
		{"noise does not delay", script{}, []int{100, -250, -280}, 5000, []int{300}, nil},
		{"never quiet", script{}, every(90, 100, 5000), 9000, []int{2100, 4170, 5160}, nil},
		{"two changes", script{}, []int{100, 1000}, 5000, []int{300, 1200}, nil},
		{"held by git", script{held: func(at int) bool { return at < 3050 }}, every(100, 100, 3000), 9000, []int{3200}, nil},
		{"held too long", script{held: func(int) bool { return true }}, []int{100}, 20_000, []int{10_100}, nil},
		{"polling", script{polledDirs: true, pollFinds: map[int]bool{2: true}}, nil, 7000, []int{4200}, []int{2000, 4000, 6000}},
		{"polling that takes long", script{polledDirs: true, pollTakes: ms(500)}, nil, 26_000, nil, []int{2000, 12_000, 22_000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.script.run(t, tc.events, tc.until)
			if diff := cmp.Diff(tc.settled, tc.script.settled); diff != "" {
				t.Errorf("settled: %s", diff)
			}
			if diff := cmp.Diff(tc.polled, tc.script.polledAt); diff != "" {
				t.Errorf("polled: %s", diff)
			}
		})
	}
}
