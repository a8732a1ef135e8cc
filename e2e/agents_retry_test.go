package e2e

import (
	"os"
	"slices"
	"strings"
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
	needFull(t, "it waits for the CLI's own retries, up to a minute")
	t.Parallel()
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

// codexWaits are the arguments that `outlive agent add` puts into a command for a provider of the owner's own.
var codexWaits = []string{"-c", "model_providers.mock.stream_max_retries=11"}

// TestCodexWaitsATroubleOut: told so, Codex goes on asking a model that is overloaded or limited, or whose answers break off, after
// the five retries at which it gives up otherwise, and goes on with the turn when the model is there again.
func TestCodexWaitsATroubleOut(t *testing.T) {
	needFull(t, "it waits for the CLI's own retries, up to a minute")
	t.Parallel()
	for name, mode := range map[string]mockmodel.Mode{"503": mockmodel.Overload, "429": mockmodel.RateLimit, "cut": mockmodel.Cut} {
		requests := 6 // the first and five retries
		if mode == mockmodel.Overload {
			requests = 30 // of each of which there are four more
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, "codex", mode, agentSetup{headless: true, noHooks: true, prepare: inserts(codexWaits...)})
			a.await("one more request than without", func() bool { return a.model.Turns() > requests })
			a.lives(t, time.Second)
			a.model.SetMode(mockmodel.Answer)
			a.succeeds()
		})
		t.Run(name+"-without", func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, "codex", mode, agentSetup{headless: true, noHooks: true})
			a.fails()
			if n := a.model.Turns(); n != requests {
				t.Errorf("it has asked %d times, want %d", n, requests)
			}
		})
	}
}

// TestCodexKeepsItsOwnProviders: for the providers that Codex has built in, nothing can be set: it refuses to start.
func TestCodexKeepsItsOwnProviders(t *testing.T) {
	needFull(t, "it tries what a CLI makes of its own settings, and nothing of outlive")
	t.Parallel()
	setting := []string{"-c", "model_provider=openai", "-c", "model_providers.openai.stream_max_retries=11"}
	a := startAgent(t, "codex", mockmodel.Answer, agentSetup{headless: true, noHooks: true, prepare: inserts(setting...)})
	a.fails()
	said, _ := os.ReadFile(a.w.path("stderr.log"))
	if a.model.Turns() != 0 || !strings.Contains(string(said), "reserved built-in provider IDs: `openai`") {
		t.Errorf("it has asked its model %d times, and said %s", a.model.Turns(), said)
	}
}

// inserts puts arguments right behind the program.
func inserts(args ...string) func(*agent) {
	return func(a *agent) { a.cmd.Args = slices.Insert(a.cmd.Args, 1, args...) }
}
