package registry

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Limit is how often something may be done: Count times in each Window, or in each phase. The zero Limit was not
// given. A parsed Limit may have Count 0, which forbids it.
type Limit struct {
	Count    int
	Window   time.Duration // 0 when PerPhase
	PerPhase bool
}

// limitText is the form of a limit, as far as JSON Schema can check it.
var limitText = lazyregexp.New(`^[0-9]{1,6}/(phase|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$`)

// ParseLimit parses 5/1h or 2/phase.
func ParseLimit(s string) (Limit, error) {
	if !limitText.MatchString(s) {
		return Limit{}, fmt.Errorf("%.40q is not a limit: write it like 5/1h or 2/phase", s)
	}
	count, per, _ := strings.Cut(s, "/")
	n, err := strconv.Atoi(count)
	if err != nil {
		return Limit{}, fmt.Errorf("%.40q is not a limit: %w", s, err)
	}
	if per == "phase" {
		return Limit{Count: n, PerPhase: true}, nil
	}
	window, err := time.ParseDuration(per)
	if err != nil || window <= 0 {
		return Limit{}, fmt.Errorf("%.40q is not a limit: the window must be greater than 0", s)
	}
	return Limit{Count: n, Window: window}, nil
}

// String formats a limit for [ParseLimit]; the zero Limit is "".
func (l Limit) String() string {
	switch {
	case l.PerPhase:
		return strconv.Itoa(l.Count) + "/phase"
	case l.Window == 0:
		return ""
	}
	return strconv.Itoa(l.Count) + "/" + FormatDuration(l.Window)
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
