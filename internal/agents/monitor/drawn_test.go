package monitor

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// A terminal program draws its spinner all the time: that is no output of the tool that it waits for.
func TestWhatIsOnlyDrawnIsNoOutput(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text  time.Duration // of the last new text, since the call; 0: the wrapper does not say
		class diagnose.Class
	}{
		"a spinner":        {time.Second, diagnose.ToolHung},
		"text in between":  {20 * time.Minute, diagnose.AtWork},
		"an older wrapper": {0, diagnose.AtWork},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: gemini\n"))
			w.gemini("shop")
			called := w.wall
			w.spends(29*time.Minute, time.Minute)
			w.pass(2 * time.Minute)
			w.reportIs("shop", func(r *agentrun.Report) {
				r.StartedAt, r.OutputAt = called.Add(-time.Minute), w.wall
				if tt.text > 0 {
					r.TextAt = called.Add(tt.text)
				}
			})
			if v := w.diagnosis(); v.Class != tt.class {
				t.Errorf("it is called %s, want %s: %s", v.Class, tt.class, v.Details)
			}
		})
	}
}
