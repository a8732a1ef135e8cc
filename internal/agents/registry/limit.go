package registry

import (
	"fmt"

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
