package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// A command in one word means what a shell would make of it.
func TestSplitWords(t *testing.T) {
	tests := map[string][]string{
		``:                            nil,
		"  \t ":                       nil,
		`claude -p  --resume {s}`:     {"claude", "-p", "--resume", "{s}"},
		`say "two words" 'and two'`:   {"say", "two words", "and two"},
		`a"b"'c'd`:                    {"abcd"},
		`'' ""`:                       {"", ""},
		`it\'s "a \"b\" \\"`:          {"it's", `a "b" \`},
		`'it''s' 'a\b' two\ words`:    {"its", `a\b`, "two words"},
		`C:\tools\claude.exe -p`:      {`C:\tools\claude.exe`, "-p"},
		`tmux send-keys "{text}" 'Ä'`: {"tmux", "send-keys", "{text}", "Ä"},
	}
	for text, want := range tests {
		got, err := splitWords(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
		if again, err := splitWords(joinWords(got)); !cmp.Equal(got, again) || err != nil {
			t.Errorf("%s: shown as %s, which is %q (%v)", text, joinWords(got), again, err)
		}
	}
	for _, text := range []string{`"`, `a 'b`, `a \`, `"a\`} {
		if got, err := splitWords(text); err == nil {
			t.Errorf("%s: got %q, want an error", text, got)
		}
	}
}

// joinWords is a command as it can be pasted into a shell.
func joinWords(words []string) string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = incident.Quoted(word)
	}
	return strings.Join(list, " ")
}

// What a person has asked for was done by hand, whatever was wrong then, and a start is no restart.
func TestWhatWasDoneByHand(t *testing.T) {
	crashed := recovery.Act{Rung: recovery.Restart, Class: "crashed", Stall: "orchestrator_crashed"}
	for asked, want := range map[string]string{
		"": "restarted, because it has crashed", "restart": "restarted by hand", "start": "started by hand", "say": "given a text by hand",
	} {
		act := crashed
		if act.Asked = asked; asked == "say" {
			act.Rung = recovery.Nudge
		}
		if got := doneWhy(act); got != want {
			t.Errorf("asked with %q: %q, want %q", asked, got, want)
		}
	}
}
