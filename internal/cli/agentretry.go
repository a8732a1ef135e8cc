package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/roster"
)

// retryWatchdog makes Claude Code go on asking an overloaded model (529) and one that is limited (429), where it gives up after ten
// retries otherwise and ends the turn (measured: 2.1.330).
const retryWatchdog = "CLAUDE_CODE_RETRY_WATCHDOG"

// retrySettings are what an agent that nobody attends is given, so that its CLI itself waits out what passes. What its owner has set in
// --env or in the environment stays, and so does how often it tries again.
func retrySettings(kind roster.Kind, starts bool, env []string) []setting {
	theirs := func(name string) bool {
		_, set := os.LookupEnv(name)
		return set || slices.ContainsFunc(env, func(given string) bool { return strings.HasPrefix(given, name+"=") })
	}
	if kind != roster.Claude || !starts || theirs(retryWatchdog) || theirs("CLAUDE_CODE_MAX_RETRIES") {
		return nil
	}
	return []setting{{[]string{"start", "env", retryWatchdog}, "1"}}
}
