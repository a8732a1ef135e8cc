package agentcli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/testing/hostpath"
)

// reading is what a turn comes to, in a few words.
func reading(t Turn) string {
	words := []string{}
	switch {
	case t.Ended:
		words = append(words, "ended")
		if t.EndedAsking {
			words = append(words, "asking")
		}
		if t.Interrupted {
			words = append(words, "interrupted")
		}
	case t.Open == Nothing:
		words = append(words, "nothing")
	default:
		words = append(words, string(t.Open))
		if t.Tool != "" {
			words = append(words, t.Tool+"("+t.ToolInput+")")
		}
	}
	if e := t.Error; e.Kind != NoFailure {
		words = append(words, fmt.Sprintf("[%s %d try %d/%d]", e.Kind, e.Status, e.Attempt, e.Max))
	}
	if r := t.Repeats; r != (Repeats{}) {
		words = append(words, fmt.Sprintf("repeats %d/%d/%d", r.SameCall, r.SameError, r.Alternating))
	}
	for _, task := range t.Tasks {
		words = append(words, fmt.Sprintf("+%s(%s)", task.Tool, task.Input))
	}
	return strings.Join(words, " ")
}

// readings cuts a transcript after each of its records and returns what a reader would have reported then, without
// immediate repetitions.
func readings(t *testing.T, path string, p parser) []string {
	t.Helper()
	var all []string
	for line := range bytes.Lines(mustRead(t, path)) {
		p.line(bytes.TrimSpace(line))
		if now := reading(p.now().snapshot()); len(all) == 0 || all[len(all)-1] != now {
			all = append(all, now)
		}
	}
	return all
}

// loops is a turn in which the same call is made six times.
func loops(call string) []string {
	all := []string{"nothing", "model", call, "model", call}
	for n := 2; n < 6; n++ {
		repeats := fmt.Sprintf(" repeats %d/0/0", n)
		all = append(all, "model"+repeats, call+repeats)
	}
	return append(all, "model repeats 6/0/0", "ended")
}

// retries is a model that is called repeatedly, with the kind of each error. The number depends on the length of the
// recording: the first three are compared.
func retries(kind string, limit int) []string {
	all := []string{"nothing", "model"}
	for n := 1; n <= 3; n++ {
		all = append(all, fmt.Sprintf("model [%s try %d/%d]", kind, n, limit))
	}
	return all
}

// Transcripts of real CLIs, read record by record. Each list is the state of the session at that time, as the
// recordings' README describes it.
func TestReadingsOfRecordings(t *testing.T) {
	t.Parallel()
	answer := []string{"nothing", "model", "ended"}
	silent := []string{"nothing", "model"}
	with := func(call string) []string { return []string{"nothing", "model", call, "model", "ended"} }
	tests := map[string][]string{
		"claude/403":        {"nothing", "model", "model [api 0 try 1/0]", "ended [auth 403 try 0/0]"},
		"claude/background": {"nothing", "model", "tool Bash(sh check.sh 60)", "model +Bash(sh check.sh 60)", "ended +Bash(sh check.sh 60)"},
		"claude/subagent": {"nothing", "model", "tool Agent(Run the checks of the shop)", "model +Agent(Run the checks of the shop)",
			"ended +Agent(Run the checks of the shop)", "ended", "model", "ended"},
		"claude/clear":                  answer,
		"claude/compact":                answer,
		"claude/credit":                 {"nothing", "model", "ended [credit 400 try 0/0]"},
		"claude/cut":                    {"nothing", "model", "model [api 0 try 1/0]", "model [api 0 try 2/0]", "ended [api 0 try 0/0]"},
		"claude/dns":                    {"nothing", "model", "model [api 0 try 1/0]", "ended [api 0 try 0/0]"},
		"claude/escape":                 silent,
		"claude/escape-tool":            {"nothing", "model", "tool Bash(sh check.sh 60)", "model", "ended interrupted"},
		"claude/exit":                   answer,
		"claude/gave-up-401":            {"nothing", "model", "model [api 0 try 1/0]", "ended [auth 401 try 0/0]"},
		"claude/gave-up-429":            {"nothing", "model", "model [api 0 try 1/0]", "ended [rate_limit 429 try 0/0]"},
		"claude/gave-up-500":            {"nothing", "model", "model [api 0 try 1/0]", "ended [api 500 try 0/0]"},
		"claude/gave-up-529":            {"nothing", "model", "model [api 0 try 1/0]", "ended [api 529 try 0/0]"},
		"claude/plan":                   {"nothing", "model", "tool ToolSearch(select:ExitPlanMode)", "model", "plan ExitPlanMode(1. Sell the shop)"},
		"claude/print-ask":              {"nothing", "model", "ended asking"},
		"claude/print-credit":           {"nothing", "model", "ended [credit 400 try 0/0]"},
		"claude/print-gave-up-401":      {"nothing", "model", "model [auth 401 try 1/1]", "ended [auth 401 try 0/0]"},
		"claude/print-gave-up-429":      {"nothing", "model", "model [rate_limit 429 try 1/1]", "ended [rate_limit 429 try 0/0]"},
		"claude/print-gave-up-529":      {"nothing", "model", "model [api 529 try 1/1]", "ended [api 529 try 0/0]"},
		"claude/print-refused":          {"nothing", "model", "model [api 0 try 1/1]", "ended [api 0 try 0/0]"},
		"claude/print-tool-interrupted": {"nothing", "model", "tool Bash(sh check.sh 60)", "model", "ended interrupted"},
		"claude/print-tool-killed":      {"nothing", "model", "tool Bash(sh check.sh 60)"},
		"claude/refused":                {"nothing", "model", "model [api 0 try 1/0]", "ended [api 0 try 0/0]"},
		"claude/slash-hang":             {"nothing", "model", "ended", "model"},
		"claude/usage-limit":            {"nothing", "model", "ended [rate_limit 429 try 0/0]"},
		"claude/401":                    retries("api 0", 0), // a terminal session does not say what it retries
		"claude/429":                    retries("api 0", 0),
		"claude/529":                    retries("api 0", 0),
		"claude/answer":                 answer,
		"claude/ask":                    {"nothing", "model", "ended asking"},
		"claude/context":                {"nothing", "model", "ended [context 400 try 0/0]"},
		"claude/hang":                   silent,
		"claude/loop":                   loops("tool Bash(sh check.sh 0)"),
		"claude/offer":                  answer,
		"claude/permission":             with("tool Bash(touch approved.txt)"), // the state file says for what it waits
		"claude/print-401":              retries("auth 401", 10),
		"claude/print-529":              retries("api 529", 10),
		"claude/print-answer":           answer,
		"claude/print-context":          {"nothing", "model", "ended [context 400 try 0/0]"},
		"claude/print-hang":             silent,
		"claude/print-permission":       with("tool Bash(touch approved.txt)"),
		"claude/print-tool":             with("tool Bash(sh check.sh 4)"),
		"claude/question":               with("question AskUserQuestion(Which database should the shop use?)"),
		"claude/stall":                  silent,
		"claude/tool":                   with("tool Bash(sh check.sh 4)"),
		"claude/tool-killed":            {"nothing", "model", "tool Bash(sh check.sh 60)"},
		"claude/background-failed": {"nothing", "model", "tool Bash(sh check.sh 60)", "model +Bash(sh check.sh 60)", "ended +Bash(sh check.sh 60)",
			"ended", "model", "ended"},

		"codex/403":                   {"nothing", "model", "ended [auth 403 try 0/0]"},
		"codex/500":                   {"nothing", "model", "ended [api 0 try 0/0]"},
		"codex/compact":               {"nothing", "model", "ended", "model", "ended"},
		"codex/cut":                   {"nothing", "model", "ended [api 0 try 0/0]"},
		"codex/dns":                   silent,
		"codex/refused":               silent,
		"codex/exec-refused":          silent,
		"codex/escape":                {"nothing", "model", "ended interrupted"},
		"codex/escape-tool":           {"nothing", "model", "tool exec(sh check.sh 60)", "model", "ended interrupted"},
		"codex/exec-ask":              {"nothing", "model", "ended asking"},
		"codex/exec-context":          {"nothing", "model", "ended [context 0 try 0/0]"},
		"codex/exec-cut":              {"nothing", "model", "ended [api 0 try 0/0]"},
		"codex/exec-quota":            {"nothing", "model", "ended [credit 0 try 0/0]"},
		"codex/exec-tool-interrupted": {"nothing", "model", "tool exec(sh check.sh 60)", "model", "ended interrupted"},
		"codex/exec-usage-limit":      {"nothing", "model", "ended [rate_limit 0 try 0/0]"},
		"codex/exit":                  answer,
		"codex/quota":                 {"nothing", "model", "ended [credit 0 try 0/0]"},
		"codex/usage-limit":           {"nothing", "model", "ended [rate_limit 0 try 0/0]"},
		"codex/401":                   {"nothing", "model", "ended [auth 401 try 0/0]"},
		"codex/429":                   {"nothing", "model", "ended [rate_limit 429 try 0/0]"},
		"codex/529":                   {"nothing", "model", "ended [api 503 try 0/0]"},
		"codex/answer":                answer,
		"codex/ask":                   {"nothing", "model", "ended asking"},
		"codex/classic-loop":          loops("tool exec_command(sh check.sh 0)"),
		"codex/classic-permission":    with("permission exec_command(touch approved.txt)"),
		"codex/classic-tool":          with("tool exec_command(sh check.sh 4)"),
		"codex/classic-tool-killed":   {"nothing", "model", "tool exec_command(sh check.sh 60)"},
		"codex/context":               {"nothing", "model", "ended [context 0 try 0/0]"},
		"codex/exec-401":              {"nothing", "model", "ended [auth 401 try 0/0]"},
		"codex/exec-429":              {"nothing", "model", "ended [rate_limit 429 try 0/0]"},
		"codex/exec-529":              {"nothing", "model", "ended [api 503 try 0/0]"},
		"codex/exec-answer":           answer,
		"codex/exec-hang":             silent,
		"codex/exec-permission":       with("tool exec(touch approved.txt)"), // it is refused without a question
		"codex/exec-tool":             with("tool exec(sh check.sh 4)"),
		"codex/hang":                  silent,
		"codex/loop":                  loops("tool exec(sh check.sh 0)"),
		"codex/permission":            with("permission exec(touch approved.txt)"),
		"codex/question":              with("question request_user_input(Which database should the shop use?)"),
		"codex/stall":                 silent,
		"codex/tool":                  with("tool exec(sh check.sh 4)"),
		"codex/tool-killed":           {"nothing", "model", "tool exec(sh check.sh 60)"},
		"codex/untrusted":             answer,

		"gemini/compressed":      with("tool a tool()"),
		"gemini/declined":        {"nothing", "model", "tool a tool()", "model", "ended interrupted"},
		"gemini/escape":          {"nothing", "model", "ended interrupted"},
		"gemini/escape-tool":     {"nothing", "model", "tool a tool()", "ended interrupted"},
		"gemini/gave-up-429":     append(with("tool a tool()"), "model", "ended", "ended [rate_limit 0 try 0/0]"),
		"gemini/masked":          append(with("tool a tool()")[:4], "tool a tool()", "model", "ended"),
		"gemini/print-503":       answer,
		"gemini/print-loop":      loops("tool a tool()"),
		"gemini/print-resumed":   append(with("tool a tool()"), "model", "ended"),
		"gemini/print-tool":      with("tool a tool()"),
		"gemini/print-tool-text": {"nothing", "model", "ended", "model", "tool a tool()", "model", "ended asking"},
		"gemini/rewind":          append(answer[:3:3], "model", "ended asking", "ended interrupted"),

		"qwen/permission":         with("tool run_shell_command(sh check.sh 4)")[1:], // the dialog and the run look the same
		"qwen/print-401":          {"model", "ended [auth 401 try 0/0]"},
		"qwen/print-429":          retries("rate_limit 429", 0)[1:],
		"qwen/print-resumed":      with("tool run_shell_command(sh check.sh 1)")[1:],
		"qwen/print-tool-refused": with("tool run_shell_command(sleep 4)")[1:],
	}
	paths, err := filepath.Glob("testdata/*/*/transcript.jsonl")
	if err != nil || len(paths) < len(tests) {
		t.Fatalf("%d recordings for %d expectations (%v)", len(paths), len(tests), err)
	}
	for _, path := range paths {
		name := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "testdata/")
		t.Run(name, func(t *testing.T) {
			vendor, _, _ := strings.Cut(name, "/")
			fresh := map[string]func() parser{"claude": newClaude, "codex": newCodex, "gemini": newGemini, "qwen": newQwen}[vendor]
			want, known := tests[name]
			if !known {
				t.Fatalf("a recording of which nobody has said what is true: %q", readings(t, path, fresh()))
			}
			got := readings(t, path, fresh())
			if last := want[len(want)-1]; strings.Contains(last, " try 3/") {
				got = got[:min(len(got), len(want))]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A recording replayed in order: state file and transcript change as recorded, with a look after each change. Its
// purpose is to show what a permission prompt looks like from outside.
func TestClaudeStateFileWithTranscript(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		wait string // what it must have waited for meanwhile; "": nothing
		last string
	}{
		"permission": {"waiting permission: tool Bash(touch approved.txt)", "idle: ended"},
		"question":   {"waiting question: question AskUserQuestion(Which database should the shop use?)", "idle: ended"},
		"offer":      {"waiting dialog: ended", "waiting dialog: ended"},
		"hang":       {"", "busy: model"},
		"529":        {"", "retrying: model [api 0 try "},
		"ask":        {"", "idle: ended asking"},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			got := replayClaude(t, filepath.Join("testdata", "claude", name))
			for _, now := range []string{"?: -", "idle: -", "busy: -"} {
				if !slices.Contains(got, now) {
					t.Errorf("never %q in\n%s", now, strings.Join(got, "\n"))
				}
			}
			if want.wait != "" && !slices.Contains(got, want.wait) {
				t.Errorf("never %q in\n%s", want.wait, strings.Join(got, "\n"))
			}
			if last := got[len(got)-1]; !strings.HasPrefix(last, want.last) {
				t.Errorf("at the end %q, not %q", last, want.last)
			}
			kind, _, _ := strings.Cut(want.wait, ":")
			for _, now := range got {
				if strings.HasPrefix(now, "waiting") && (kind == "" || !strings.HasPrefix(now, kind)) {
					t.Errorf("it never waited so: %q", now)
				}
			}
		})
	}
}

// replayClaude replays a recording in a configuration directory, and returns what a reader reports after each change.
func replayClaude(t *testing.T, recording string) []string {
	t.Helper()
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "sessions", "x"), "") // the folder
	records := bytes.SplitAfter(mustRead(t, filepath.Join(recording, "transcript.jsonl")), []byte("\n"))
	r := NewReader(Options{Places: Places{Claude: home}})
	var all []string
	var id string
	for line := range bytes.Lines(mustRead(t, filepath.Join(recording, "timeline.jsonl"))) {
		var event struct {
			What string          `json:"what"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatal(err)
		}
		switch event.What {
		case "session":
			var s claudeSession
			if err := json.Unmarshal(event.Data, &s); err != nil {
				t.Fatal(err)
			}
			id = s.ID
			writeFile(t, filepath.Join(home, "sessions", "4711.json"), hostpath.InText(string(event.Data), "/home/u"))
		case "transcript":
			appendFile(t, filepath.Join(home, "projects", claudeFolder(hostpath.Abs("/home/u/shop")), id+".jsonl"), hostpath.InText(string(records[0]), "/home/u"))
			records = records[1:]
		default:
			continue
		}
		all = append(all, look(t, r, hostpath.Abs("/home/u")))
	}
	return slices.Compact(all)
}

// look is the only session that there is, in a few words.
func look(t *testing.T, r *Reader, dir string) string {
	t.Helper()
	sessions, err := r.Sessions(Query{Dirs: []string{dir}})
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%d sessions (%v)", len(sessions), err)
	}
	s := sessions[0]
	status := string(s.Status)
	if s.Status == Unknown {
		status = "?"
	}
	if s.WaitingFor != "" {
		status += " " + string(s.WaitingFor)
	}
	turn := reading(s.Turn)
	if s.Turn.Sequence == 0 {
		turn = "-"
	}
	return status + ": " + turn
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func appendFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
