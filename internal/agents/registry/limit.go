package registry

import (
	"fmt"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// limitText is the form of a limit, as far as JSON Schema can check it.
var limitText = lazyregexp.New(`^[0-9]{1,6}/(phase|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$`)

// ParseLimit parses 5/1h or 2/phase. A limit of 0 forbids it.
func ParseLimit(s string) (recovery.Budget, error) {
	if !limitText.MatchString(s) {
		return recovery.Budget{}, fmt.Errorf("%.40q is not a limit: write it like 5/1h or 2/phase", s)
	}
	return recovery.ParseBudget(s)
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
