package e2e

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// waitsOut are the settings that `outlive agent add` writes for Claude Code.
var waitsOut = []string{"CLAUDE_CODE_RETRY_WATCHDOG=1"}

// TestClaudeWaitsAnOverloadOut: with its retry watchdog Claude Code goes on asking an overloaded model after the retries at which it
// gives up otherwise, and goes on with the turn when the model is there again. CLAUDE_CODE_MAX_RETRIES makes the retries few, so
// that the test is short.
func TestClaudeWaitsAnOverloadOut(t *testing.T) {
	for name, test := range map[string]struct {
		mode mockmodel.Mode
		env  []string
		out  bool // the CLI waits it out
	}{
		"529":         {mockmodel.Overload, waitsOut, true},
		"429":         {mockmodel.RateLimit, waitsOut, true},
		"529-without": {mockmodel.Overload, nil, false},
		"429-without": {mockmodel.RateLimit, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := append([]string{"CLAUDE_CODE_MAX_RETRIES=2"}, test.env...)
			a := startAgent(t, "claude", test.mode, agentSetup{headless: true, env: env})
			if !test.out {
				a.fails()
				return
			}
			a.await("a fifth request", func() bool { return a.model.Turns() >= 5 })
			a.lives(t, time.Second)
			a.model.SetMode(mockmodel.Answer)
			a.succeeds()
		})
	}
}
