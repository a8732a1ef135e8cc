package agentrun

import (
	"strings"
	"testing"
)

// Some CLIs work on one prompt and exit wherever they have no terminal.
func TestHeadlessInTheReport(t *testing.T) {
	for _, test := range []struct {
		command         string
		terminal, pipes bool
		want            bool
	}{
		{"gemini fix", false, false, true},
		{"gemini fix", true, false, false},
		{"gemini fix", true, true, true},
		{"gemini -p fix", true, false, true},
		{"claude fix", false, false, false},
		{"claude -p fix", true, false, true},
	} {
		o := Options{Agent: "shop", Command: strings.Fields(test.command), Terminal: test.terminal, Pipes: test.pipes}
		if got := begin(o).Headless; got != test.want {
			t.Errorf("%s, terminal %v, pipes %v: %v", test.command, test.terminal, test.pipes, got)
		}
	}
}
