package recovery

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]Budget{
		"5/1h":          {Max: 5, Window: time.Hour},
		"1/60s":         {Max: 1, Window: time.Minute},
		"2/phase":       {Max: 2, Window: 24 * time.Hour, PerPhase: true},
		"0/1h":          {Max: 0, Window: time.Hour},
		"3/1h30m":       {Max: 3, Window: 90 * time.Minute},
		"12/2m30.5s":    {Max: 12, Window: 150500 * time.Millisecond},
		"0/1h30m":       {Max: 0, Window: 90 * time.Minute},
		"1/0.5ms":       {Max: 1, Window: time.Millisecond},
		"999999/10h10m": {Max: 999999, Window: 610 * time.Minute},
	} {
		got, err := ParseBudget(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if again, err := ParseBudget(got.String()); again != got || err != nil {
			t.Errorf("%q is printed as %q, which is %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"5/1h0m0s": "5/1h", "1/60s": "1/1m", "1/1h0m5s": "1/1h0m5s",
	} {
		if b, err := ParseBudget(text); err != nil || b.String() != want {
			t.Errorf("%q is printed as %q, want %q (%v)", text, b, want, err)
		}
	}
	for _, text := range []string{"", "5", "5/", "/1h", "-1/1h", "5/h", "5/-1h", "5/0s", "x/1h", "5/1h/phase", "5/1h/2h", "5/1h/2", "5/1d", "1000000/1h", "9999999/1h", "5/9999999h", "2/phase/6h", " 2 / phase "} {
		if b, err := ParseBudget(text); err == nil || !strings.Contains(err.Error(), "5/1h") {
			t.Errorf("%q: %+v, %v: the error should show the form", text, b, err)
		}
	}
}

func TestFormatDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{time.Hour: "1h", 2 * time.Minute: "2m", 90 * time.Second: "1m30s", 10 * time.Second: "10s", 100 * time.Minute: "1h40m", 10 * time.Minute: "10m", 20 * time.Hour: "20h"} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v is written %s, want %s", d, got, want)
		}
	}
}

func FuzzParseBudget(f *testing.F) {
	for _, s := range []string{"5/1h", "2/phase", "1/60s", "1/0.5ms", "", "//", "1/1ns", "9/2562047h47m16.854775807s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := ParseBudget(s)
		if err != nil {
			return
		}
		if b.Window <= 0 || b.Max < 0 {
			t.Fatalf("%q: %+v", s, b)
		}
		if again, err := ParseBudget(b.String()); err != nil || again != b {
			t.Fatalf("%q -> %+v -> %q -> %+v, %v", s, b, b, again, err)
		}
	})
}

// A window is one: it renews itself act by act, from each act's own time.
func TestUsage(t *testing.T) {
	b := Budget{Max: 2, Window: time.Hour}
	at := func(minutes ...int) (list []time.Time) {
		for _, m := range minutes {
			list = append(list, t0.Add(time.Duration(m)*time.Minute))
		}
		return list
	}
	for _, c := range []struct {
		name  string
		times []time.Time
		now   int // minute
		used  int
	}{
		{"nothing", nil, 0, 0},
		{"one", at(0), 59, 1},
		{"two", at(0, 30), 59, 2},
		{"the first has left", at(0, 30), 60, 1},
		{"three, one too many", at(0, 30, 40), 50, 3},
		{"from before the clock was set back", at(500, 501), 0, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if u := b.usage(c.times, t0.Add(time.Duration(c.now)*time.Minute)); u.Used != c.used {
				t.Errorf("used %d, want %d", u.Used, c.used)
			}
		})
	}
}

// More starts than are allowed are not told as a part of them, and one is not told as many.
func TestASpentBudgetInWords(t *testing.T) {
	for want, u := range map[string]Usage{
		"2 of 2 starts are used (1/1h, for this problem)":          {Used: 2, Max: 2},
		"1 of 1 start is used (1/1h, for this problem)":            {Used: 1, Max: 1},
		"2 starts, more than are allowed (1/1h, for this problem)": {Used: 2, Max: 1},
	} {
		c := judged{usage: u, budget: Budget{Max: 1, Window: time.Hour}}
		if got := c.used(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestLadderFault(t *testing.T) {
	for _, l := range []Ladder{{Observe, Interrupt, Resume, Restart}, {Restart, Escalate}, {Escalate}} {
		if fault := l.Fault(); fault != "" {
			t.Errorf("%v: %s", l, fault)
		}
	}
	for want, l := range map[string]Ladder{"no step": nil, `"restart" comes after "escalate"`: {Nudge, Escalate, Restart}} {
		if fault := l.Fault(); !strings.Contains(fault, want) {
			t.Errorf("%v: %q", l, fault)
		}
	}
}

// The tables hold together: each rung of each ladder exists, and what starts has a budget.
func TestClassTable(t *testing.T) {
	for class, r := range classes {
		starts := false
		for _, rung := range r.ladder {
			starts = starts || rung.Starts()
			if !slices.Contains(Rungs(), rung) {
				t.Errorf("%s: %q is no step", class, rung)
			}
		}
		if fault := r.ladder.Fault(); fault != "" {
			t.Errorf("%s: %s", class, fault)
		}
		if starts != (r.budget != Budget{}) {
			t.Errorf("%s: a ladder that starts %v, a budget of %s", class, starts, r.budget)
		}
		for _, rung := range r.ladder {
			if d, ok := Default().Verify[rung]; rung != Escalate && (!ok || d <= 0) {
				t.Errorf("%s: nothing says how long to wait after %s", class, rung)
			}
		}
	}
}
