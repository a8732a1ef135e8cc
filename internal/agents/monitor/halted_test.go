package monitor

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// An agent whose process is stopped does nothing, whatever its files say. A human is told soon, and nobody fights with the
// person who has pressed Ctrl-Z.
func TestAStoppedProcess(t *testing.T) {
	t.Parallel()
	for name, pid := range map[string]int{"the CLI": 1001, "the CLI behind its launcher": 1002} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.declare("", w.agent("shop", "kind: claude\n"+starts))
			c := w.claude("shop", pid)
			if pid == 1002 {
				w.process(1001, w.dir("shop"), 0)
				w.args[1001], w.args[1002] = []string{"npx", "claude"}, []string{"claude"}
				w.parents[1002] = 1001
				w.reports("shop", 1001, nil)
			}
			c.prompt()
			c.tool("Bash", `"command":"make"`)
			w.spends(time.Minute, 10*time.Second)
			w.halted[pid] = true
			w.cycle()
			view, err := Inspect(t.Context(), w.opts)
			if err != nil || len(view.Findings) != 1 {
				t.Fatal(view, err)
			}
			if v := view.Findings[0].Diagnosis; v.Class != diagnose.Stopped {
				t.Errorf("it is called %s: %s", v.Class, v.Details)
			}
			w.spends(2*time.Minute, 10*time.Second)
			if len(w.said) != 1 || !strings.Contains(w.said[0], "shop has a stopped process") || !strings.Contains(w.said[0], "kill -CONT") {
				t.Errorf("said %q", w.said)
			}
			w.spends(time.Hour, 5*time.Minute)
			if len(w.stopped)+len(w.started)+len(w.interrupted) != 0 {
				t.Errorf("stopped %v, started %v, interrupted %v", w.stopped, w.started, w.interrupted)
			}
			w.halted[pid] = false
			c.prompt()
			w.spends(time.Minute, 10*time.Second)
			if n := len(w.said); !strings.Contains(w.said[n-1], "shop works again") {
				t.Errorf("said %q", w.said)
			}
		})
	}
}
