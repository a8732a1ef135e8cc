package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// While the machine sleeps, limits are lifted and networks come back; a CLI that tries again by itself does not, and nothing is helped.
func TestASleepLengthensWaits(t *testing.T) {
	for _, test := range []struct {
		name  string
		act   recovery.Act
		slept time.Duration
	}{
		{"a CLI that tries again by itself", recovery.Act{Rung: recovery.Hold, Class: string(diagnose.APIBackoff)}, time.Hour},
		{"a limit that is lifted by the clock", recovery.Act{Rung: recovery.Hold, Class: string(diagnose.RateLimited)}, 0},
		{"an agent that was told to go on", recovery.Act{Rung: recovery.Nudge, Class: string(diagnose.ModelSilent)}, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
			test.act.At, test.act.Deadline = at, at.Add(15*time.Minute)
			sleep := Sleep{End: at.Add(time.Hour + time.Minute), Length: time.Hour}
			if got := awake([]recovery.Act{test.act}, []Sleep{sleep})[0].Deadline; !got.Equal(at.Add(15*time.Minute + test.slept)) {
				t.Errorf("the wait ends %v after its beginning", got.Sub(at))
			}
		})
	}
}
