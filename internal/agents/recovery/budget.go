package recovery

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// phaseWindow is how long an act counts in a budget per phase: an agent without phases is in one for ever.
const phaseWindow = 24 * time.Hour

// Budget is how often something may be done within a sliding window. The zero value has no limit.
type Budget struct {
	Max      int           // how often; 0: never
	Window   time.Duration // in which time; 0: there is no limit
	PerPhase bool          // only what was done in the same phase counts
}

// mostRestarts is the largest number of a budget: six digits, as in the registry's schema.
const mostRestarts = 999_999

// ParseBudget reads "5/1h" (five in an hour), "2/phase" (two in one phase, in a day) or "2/phase/6h".
func ParseBudget(s string) (Budget, error) {
	parts := strings.Split(strings.TrimSpace(s), "/")
	fail := func(why string) (Budget, error) {
		return Budget{}, fmt.Errorf("budget %q: %s: want a number and a time, such as 5/1h or 2/phase", s, why)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(parts[0]), 10, 31)
	if err != nil || n > mostRestarts {
		return fail(fmt.Sprintf("%q is not a number", parts[0]))
	}
	b := Budget{Max: int(n)}
	parts = parts[1:]
	if len(parts) > 0 && strings.TrimSpace(parts[0]) == "phase" {
		b.PerPhase, b.Window = true, phaseWindow
		parts = parts[1:]
		if len(parts) == 0 {
			return b, nil
		}
	}
	if len(parts) != 1 {
		return fail("want exactly one time")
	}
	if b.Window, err = time.ParseDuration(strings.TrimSpace(parts[0])); err != nil {
		return fail(fmt.Sprintf("%q is not a time", parts[0]))
	}
	if b.Window <= 0 {
		return fail("the time is not positive")
	}
	return b, nil
}

// String prints what [ParseBudget] reads; "unlimited" for the zero value.
func (b Budget) String() string {
	switch {
	case b.unlimited():
		return "unlimited"
	case b.PerPhase && b.Window == phaseWindow:
		return fmt.Sprintf("%d/phase", b.Max)
	case b.PerPhase:
		return fmt.Sprintf("%d/phase/%s", b.Max, FormatDuration(b.Window))
	}
	return fmt.Sprintf("%d/%s", b.Max, FormatDuration(b.Window))
}

// FormatDuration formats a duration without zero units: 2m, not 2m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func (b Budget) unlimited() bool { return b.Window == 0 }

// Usage is how much of a budget is used.
type Usage struct {
	Used     int
	Max      int
	Window   time.Duration
	PerPhase bool // only what was done in the same phase is counted
}

// usage counts the times in the window. Future times, from before the clock was set back, count, so that a wrong clock
// gains nothing.
func (b Budget) usage(times []time.Time, now time.Time) Usage {
	u := Usage{Max: b.Max, Window: b.Window, PerPhase: b.PerPhase}
	for _, t := range times {
		if now.Sub(t) < b.Window {
			u.Used++
		}
	}
	return u
}
