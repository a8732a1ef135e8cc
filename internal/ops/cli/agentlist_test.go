package cli

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
)

// A limit whose reset is known is counted down to.
func TestAListCountsDownToAReset(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	f := monitor.Finding{Diagnosis: diagnose.Diagnosis{Class: diagnose.RateLimited, Stall: diagnose.Errored, Hold: diagnose.Span(72 * time.Minute)}}
	if got := stateWord(f); got != "limit, resets in 1h12m" {
		t.Errorf("%q", got)
	}
	if r := agentRecordOf(f, at); r.Until == nil || !r.Until.Equal(at.Add(72*time.Minute)) {
		t.Errorf("until %v", r.Until)
	}
	f.Diagnosis.Hold = 0
	if got := stateWord(f); got != "is rate limited" {
		t.Errorf("%q", got)
	}
}
