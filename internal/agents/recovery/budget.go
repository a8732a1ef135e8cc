package recovery

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// phaseWindow is how long an act counts in a budget per phase: an agent without phases is in one for ever.
const phaseWindow = 24 * time.Hour

// Budget is how often something may be done within a sliding window. The zero value has no limit.
type Budget struct {
	Max      int           // how often; 0: never
	Window   time.Duration // in which time; 0: there is no limit
	PerPhase bool          // only what was done in the same phase counts
}

// BudgetForm is how a budget is written, as far as a pattern can say it.
var BudgetForm = lazyregexp.New(`^[0-9]{1,6}/(phase|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$`)

// ParseBudget reads "5/1h" (five in an hour) or "2/phase" (two in one phase, in a day).
func ParseBudget(s string) (Budget, error) {
	count, per, _ := strings.Cut(s, "/")
	b := Budget{Window: phaseWindow, PerPhase: per == "phase"}
	good := BudgetForm.MatchString(s)
	if good && !b.PerPhase {
		window, err := time.ParseDuration(per)
		good = err == nil && window > 0
		b.Window = max(window, time.Millisecond) // shorter ones could not be written down again
	}
	if !good {
		return Budget{}, fmt.Errorf("%.40q is not a limit: write it like 5/1h or 2/phase", s)
	}
	b.Max, _ = strconv.Atoi(count) // six digits at most
	return b, nil
}

// String prints what [ParseBudget] reads; "unlimited" for the zero value.
func (b Budget) String() string {
	switch {
	case b.unlimited():
		return "unlimited"
	case b.PerPhase:
		return fmt.Sprintf("%d/phase", b.Max)
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
