package cli

import (
	"testing"

	"github.com/outlive-mcp/outlive/internal/roster"
)

// An agent that is started without a person gets the retry settings of its CLI, unless its owner has said something about them.
func TestRetrySettings(t *testing.T) {
	for name, test := range map[string]struct {
		kind   roster.Kind
		starts bool
		env    []string
		system string // a variable of the environment
		want   int
	}{
		"claude":                         {kind: roster.Claude, starts: true, want: 1},
		"another variable":               {kind: roster.Claude, starts: true, env: []string{"LANG=C"}, want: 1},
		"only watched":                   {kind: roster.Claude},
		"another CLI":                    {kind: roster.Codex, starts: true},
		"its owner wants none":           {kind: roster.Claude, starts: true, env: []string{retryWatchdog + "=0"}},
		"its owner has said how often":   {kind: roster.Claude, starts: true, env: []string{"CLAUDE_CODE_MAX_RETRIES=3"}},
		"its owner's environment has it": {kind: roster.Claude, starts: true, system: retryWatchdog},
	} {
		t.Run(name, func(t *testing.T) {
			if test.system != "" {
				t.Setenv(test.system, "0")
			}
			got := retrySettings(test.kind, test.starts, test.env)
			if len(got) != test.want || test.want == 1 && (got[0].value != "1" || got[0].key[2] != retryWatchdog) {
				t.Errorf("%+v", got)
			}
		})
	}
}
