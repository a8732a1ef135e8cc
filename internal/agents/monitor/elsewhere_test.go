package monitor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// An agent has an account of its own, whose files are elsewhere than the monitor's environment says. It was called one that does not
// begin, and was started again in the middle of its work.
func TestAnAgentWhoseFilesAreElsewhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		declared string
		process  bool
	}{
		"by its process":     {"", true},
		"by its declaration": {", env: {CLAUDE_CONFIG_DIR: %q}", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			work := filepath.Join(w.home, "work")
			declared := ""
			if tt.declared != "" {
				declared = fmt.Sprintf(tt.declared, work)
			}
			w.declare("", w.agent("shop", "kind: claude\nstart: {cmd: [agent, new], resume: [agent, resume, \"{session}\"]"+declared+"}\n"))
			c := w.claude("shop", 1001)
			if tt.process {
				w.environ = map[int]map[string]string{1001: {"CLAUDE_CONFIG_DIR": work}}
			}
			c.prompt()
			c.tool("Bash", `"command":"make"`)
			if err := os.Rename(filepath.Join(w.home, "claude"), work); err != nil {
				t.Fatal(err)
			}
			w.spends(20*time.Minute, time.Minute)
			if v := w.diagnosis(); v.Class != diagnose.AtWork || len(w.started)+len(w.stopped)+len(w.said) != 0 {
				t.Errorf("it works, and is called %s: %s; started %v, said %q", v.Class, v.Details, w.rungs(), w.said)
			}
			delete(w.living, 1001)
			w.cycle()
			if len(w.started) != 1 || w.started[0].Command[2] != "s-shop" || !slices.Contains(w.started[0].Environ, "CLAUDE_CONFIG_DIR="+work) {
				t.Errorf("it has crashed, and is gone on with by %+v", w.started)
			}
		})
	}
}
