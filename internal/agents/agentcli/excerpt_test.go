package agentcli

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAsks(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Which database?":                          true,
		"**Which database should I use?**":         true,
		"Shall I go on? (y/n)":                     true,
		"Shall I go on? [Y/n].":                    true,
		"I have two ideas (would that be enough?)": true,
		"Which?\n\n":                               true,
		"どちらですか？":                                  true,
		"\"Really?\"":                              true,
		"I found two. Please let me know which one to deploy.":     true,
		"Both work.\n\nLet me know whether to delete it":           true,
		"Please confirm the deletion.":                             true,
		"Done. Let me know if you want anything else.":             false,
		"Done. Let me know what you think!":                        false,
		"Please confirm it with your team if you want. I am done.": false,
		"Done.":                                  false,
		"Why? Because.":                          false,
		"Which one? I chose the first (SQLite).": false,
		"":                                       false,
		"(a)":                                    false,
		"See https://example.com/?q=1":           false,
	} {
		if got := asks(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestInputText(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"command":"go test ./...","timeout":5}`:                   "go test ./...",
		`{"command":["git","status"]}`:                              "git status",
		`{"questions":[{"question":"Which?"},{"question":"Why?"}]}`: "Which?\nWhy?",
		`{"content":"x","file_path":"/home/u/a.go"}`:                "/home/u/a.go",
		`{"a": 1, "b": [2]}`:                                        `{"a":1,"b":[2]}`,
		`{}`:                                                        "",
		`not JSON`:                                                  "not JSON",
		`{"command":{"strange":true}}`:                              `{"command":{"strange":true}}`,
	} {
		if got := inputText(json.RawMessage(args)); got != want {
			t.Errorf("%s: %q, wanted %q", args, got, want)
		}
	}
}

func TestLoop(t *testing.T) {
	t.Parallel()
	type step struct {
		call, result string
		failed       bool
	}
	ok := func(names string) (steps []step) {
		for _, name := range names {
			steps = append(steps, step{call: string(name)})
		}
		return steps
	}
	tests := map[string]struct {
		steps []step
		want  Repeats
	}{
		"nothing":                   {nil, Repeats{}},
		"once":                      {ok("a"), Repeats{}},
		"the same four times":       {ok("aaaa"), Repeats{SameCall: 4}},
		"something between":         {ok("aaab"), Repeats{}},
		"two in turn":               {ok("ababab"), Repeats{Alternating: 3}},
		"two in turn, an odd one":   {ok("xababa"), Repeats{Alternating: 2}},
		"then the same":             {ok("abaa"), Repeats{SameCall: 2}},
		"the same with new results": {[]step{{"a", "1", false}, {"a", "2", false}}, Repeats{}},
		"only the time differs":     {[]step{{"a", "Chunk ID: 1\nWall time: 0.1 seconds\nx", false}, {"a", "Chunk ID: 2\nWall time: 0.2 seconds\nx", false}}, Repeats{SameCall: 2}},
		"one error of several calls": {[]step{{"a", "no", true}, {"b", "no", true}, {"c", "no", true}},
			Repeats{SameError: 3}},
		"a success between errors": {[]step{{"a", "no", true}, {"b", "no", true}, {"c", "", false}}, Repeats{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var l loop
			for i, s := range test.steps {
				l.add(digest(s.call), resultOf(s.result), s.failed, i)
			}
			if diff := cmp.Diff(test.want, l.repeats()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Different commands that fail without a word have met no error in common: a search that finds nothing ends so.
func TestAnExitStatusAloneIsNoError(t *testing.T) {
	t.Parallel()
	for want, outputs := range map[int][]string{
		0: {
			"",
			"Exit code 1",
			"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOriginal token count: 0\nOutput:\n",
			"Exit code: 2\nWall time: 0 seconds\nOutput:\n",
			"Output: (empty)\nExit Code: 1\nProcess Group PGID: 7",
		},
		3: {"no such file", "Exit code 1\nno such file", "Process exited with code 1\nOutput:\nno such file"},
	} {
		for _, output := range outputs {
			var now turn
			now.prompt(time.Unix(1_800_000_000, 0))
			for i := range 3 {
				id := fmt.Sprint(i)
				now.called(call{id: id, tool: "Bash", asks: Tool, key: digest(id)})
				now.returned(id, output, true, time.Time{})
			}
			if got := now.snapshot().Repeats.SameError; got != want {
				t.Errorf("%q: the same error %d times, want %d", output, got, want)
			}
		}
	}
}
