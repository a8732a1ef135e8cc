package tier

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// Patience is the door's bound against hanging: what has not happened by then does not happen.
const Patience = await.Limit

// Limit is how long something that is promised within a time may take in this run. The door does not judge times, since other
// programs on the machine take theirs: there it is at least [Patience].
func Limit(promised time.Duration) time.Duration {
	if Name() == "door" {
		return max(promised, Patience)
	}
	return promised
}

// Within is an error if what has taken longer than promised, or at the door longer than [Patience].
func Within(t testing.TB, what string, took, promised time.Duration) {
	t.Helper()
	if limit := Limit(promised); took > limit {
		t.Errorf("%s took %v, the limit is %v", what, took, limit)
	}
}
