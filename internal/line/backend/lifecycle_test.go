package backend

import (
	"testing"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
)

// What the actions of one tick cause is told to the machine in the order in which it happened: the first cause counts.
func TestEventsOfATickKeepTheirOrder(t *testing.T) {
	w := readyWorld(Options{NoTools: true, Reload: ReplaceReload})
	for _, reason := range []string{"first", "second"} {
		w.b.life.events = append(w.b.life.events, supervise.Restart{Cause: supervise.Requested, Source: supervise.SourceControl, Reason: reason})
	}
	w.b.life.act(nil)
	if got := w.b.machine.Snapshot().Reason; got != "first" {
		t.Errorf("the server ends because of the %s request", got)
	}
}
