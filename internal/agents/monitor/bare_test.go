package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// isOver is the end of its process, which removes its own file.
func (c *claude) isOver() {
	c.w.t.Helper()
	delete(c.w.living, c.pid)
	if err := os.Remove(filepath.Join(c.w.opts.Places[agentcli.Claude], "sessions", fmt.Sprint(c.pid, ".json"))); err != nil {
		c.w.t.Fatal(err)
	}
}

// A script runs claude -p again and again, and waits in between, or before the first time. What one of them has asked or failed with is
// over: the script goes on by itself, so that nobody is told, and it is not ended.
func TestAScriptThatWaitsForItsNextRun(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string]func(*claude){
		"before the first":   nil,
		"after an answer":    func(c *claude) { c.ends("All done.") },
		"after a question":   func(c *claude) { c.ends("Shall I go on with the next one?") },
		"after a limit":      func(c *claude) { c.fails("rate_limit", "429", "API Error: 429 rate limit") },
		"after an overload":  func(c *claude) { c.fails("overloaded", "529", "API Error: 529 Overloaded") },
		"with a task behind": func(c *claude) { c.leaves("npm test"); delete(c.w.living, shellID) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			w.process(1000, w.dir("shop"), time.Minute)
			w.process(1001, w.dir("shop"), time.Minute)
			w.parents[1001], w.args[1001] = 1000, []string{"bash", "loop.sh"}
			w.reports("shop", 1001, nil)
			w.cycle()
			c := w.claude("shop", 1002).headless()
			w.parents[1002] = 1001
			if runs != nil {
				c.prompt()
				w.cycle()
				w.pass(time.Minute)
				runs(c)
			}
			c.isOver()
			w.process(1003, w.dir("shop"), 0)
			w.parents[1003], w.args[1003] = 1001, []string{"sleep", "6000"}
			w.spends(100*time.Minute, 2*time.Minute)
			if len(w.said)+len(w.stopped)+len(w.started) != 0 {
				v := w.diagnosis()
				t.Errorf("told %q, stopped %v, started %v; it is called %s: %s", w.said, w.stopped, w.rungs(), v.Class, v.Details)
			}
			w.spends(6*time.Hour, 10*time.Minute)
			if len(w.stopped)+len(w.started) != 0 {
				t.Errorf("the script was ended: stopped %v, started %v", w.stopped, w.rungs())
			}
		})
	}
}
