package cli

import (
	"bytes"
	"testing"
)

// A run does without the other commands. Nobody must be able to tell.
func TestARunKnowsWhatAllCommandsKnow(t *testing.T) {
	for _, args := range [][]string{
		{"run"}, {"run", "--help"}, {"run", "-h"}, {"run", "--version"}, {"run", "--no-such-flag", "--", "true"},
		{"run", "--standby", "x", "--", "true"}, {"run", "--backoff", "x", "--", "true"}, {"run", "--", "no-such-command"},
	} {
		var said [2]bytes.Buffer
		full, lean := newRoot(streams{}), rootFor(streams{}, args)
		if n := len(lean.Commands()); n != 1 {
			t.Fatalf("%d commands for %q, want one", n, args)
		}
		full.SetOut(&said[0])
		full.SetErr(&said[0])
		full.SetArgs(args)
		lean.SetOut(&said[1])
		lean.SetErr(&said[1])
		lean.SetArgs(args)
		codes := [2]int{status(full.Execute(), &said[0]), status(lean.Execute(), &said[1])}
		if codes[0] != codes[1] || said[0].String() != said[1].String() || said[0].Len() == 0 {
			t.Errorf("%q: status %d and %d\n--- all commands\n%s\n--- run alone\n%s", args, codes[0], codes[1], &said[0], &said[1])
		}
	}
	if n := len(rootFor(streams{}, []string{"status"}).Commands()); n < 10 {
		t.Errorf("%d commands for another verb", n)
	}
}
