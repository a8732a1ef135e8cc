//go:build !race && !wine

// One goroutine reads here: the race detector would find nothing, at ten times the cost.

package agentcli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// attachments are sizes of attachments. Each is in its line twice, in base64: for the model and for the terminal.
var attachments = map[string]int{"1 MB": 1 << 20, "5 MB": 5 << 20, "20 MB": 20 << 20}

const (
	readsIt = `{"type":"assistant","timestamp":"2026-11-21T13:01:00Z","message":{"id":"m1","stop_reason":"tool_use","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/home/u/shop/plan.pdf"}}]}}`
	goesOn  = `{"type":"assistant","timestamp":"2026-11-21T13:03:00Z","message":{"id":"m2","stop_reason":"end_turn","content":[{"type":"text","text":"Done."}]}}`
)

// attached are the parts of the line with an attachment, in the forms in which the CLIs write it.
func attached(form string, size int) []string {
	data := strings.Repeat("QUJD", size/3+1)
	switch form {
	case "claude pdf":
		return []string{`{"parentUuid":"p","isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"PDF file read"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"`, data,
			`"}}]},"timestamp":"2026-11-21T13:02:00Z","toolUseResult":{"type":"pdf","file":{"filePath":"/home/u/shop/plan.pdf","base64":"`, data, `","originalSize":7}},"sessionId":"s","cwd":"/home/u/shop"}` + "\n"}
	case "claude picture":
		return []string{`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","data":"`, data,
			`","media_type":"image/png"}}],"tool_use_id":"t1"}]},"toolUseResult":{"type":"image","file":{"base64":"`, data, `"}},"timestamp":"2026-11-21T13:02:00Z"}` + "\n"}
	}
	return []string{`{"timestamp":"2026-11-21T13:02:00Z","type":"response_item","payload":{"type":"function_call_output","output":[{"type":"input_image","image_url":"data:image/png;base64,`, data, data,
		`"}],"call_id":"c1"}}` + "\n"}
}

const codexReadsIt = `{"type":"session_meta","payload":{"id":"s","cwd":"/home/u/shop"}}
{"timestamp":"2026-11-21T13:00:00Z","type":"event_msg","payload":{"type":"task_started"}}
{"timestamp":"2026-11-21T13:01:00Z","type":"response_item","payload":{"type":"function_call","name":"view_image","call_id":"c1","arguments":"{\"path\":\"x.png\"}"}}
`

// writeParts appends to a file.
func writeParts(t testing.TB, path string, parts ...string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for _, part := range parts {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// lookMost is what one look may allocate, in bytes, however long the lines are.
const lookMost = 48 << 20

// lookedAt looks at a transcript, and checks that this took little memory. Nothing else may run meanwhile.
func lookedAt(t *testing.T, tr *transcript, kind Kind) Session {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := tr.look(time.Time{}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > lookMost {
		t.Errorf("the look took %d bytes", took)
	}
	return tr.session(kind)
}

// A result with an attachment ends its call like any other. So it does for a reader that has followed, for one that begins
// now, and for one that looks while the line is being written.
func TestAttachmentsEndTheirCalls(t *testing.T) { // not parallel: memory is measured
	for name, size := range attachments {
		for _, form := range []string{"claude pdf", "claude picture", "codex picture"} {
			if size > 5<<20 && form != "claude pdf" {
				continue // nothing writes pictures of that size
			}
			t.Run(name+"/"+form, func(t *testing.T) {
				kind, fresh, begins := Claude, newClaude, claudePrompt+"\n"+readsIt+"\n"
				if form == "codex picture" {
					kind, fresh, begins = Codex, newCodex, codexReadsIt
				}
				path := filepath.Join(t.TempDir(), "t.jsonl")
				writeFile(t, path, begins)
				follows := newTranscript(path, fresh)
				if got := lookedAt(t, follows, kind); got.Turn.Open != Tool || got.Unread != "" {
					t.Fatalf("before it: %q, %s", reading(got.Turn), got.Unread)
				}
				parts := attached(form, size)
				writeParts(t, path, parts[:len(parts)-1]...)
				before := follows.seq
				for range 2 {
					got := lookedAt(t, follows, kind)
					if got.Turn.Open != Tool || got.Turn.Sequence != before || got.Unread == "" || !got.Unfinished {
						t.Errorf("while it is written: %q, unread: %s", reading(got.Turn), got.Unread)
					}
				}
				writeParts(t, path, parts[len(parts)-1])
				for who, tr := range map[string]*transcript{"followed": follows, "begins now": newTranscript(path, fresh)} {
					got := lookedAt(t, tr, kind)
					if got.Turn.Open != Model || got.Turn.Sequence <= before || got.Unread != "" {
						t.Errorf("%s: %q, unread: %s", who, reading(got.Turn), got.Unread)
					}
				}
			})
		}
	}
}

// A prompt with a picture is the first line of a session: it says which session it is.
func TestPictureAtTheBeginning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	path := filepath.Join(w.options.Places[Claude], "projects", claudeFolder(shop), "a.jsonl")
	writeFile(t, path, "")
	writeParts(t, path, `{"type":"user","message":{"content":[{"type":"image","source":{"data":"`, strings.Repeat("QUJD", 2<<20),
		`"}},{"type":"text","text":"Look"}]},"timestamp":"`+now()+`",`, fmt.Sprintf(`"cwd":%q,"sessionId":"a"}`, shop), "\n")
	same(t, "by its directory", w.found(NewReader(w.options), Query{Dirs: []string{shop}}), "claude a 0 model")
	appendFile(t, path, strings.Repeat(`{"type":"attachment","x":"`+strings.Repeat("z", 100_000)+`"}`+"\n", 250)+goesOn+"\n")
	same(t, "far behind it", w.found(NewReader(w.options), Query{Dirs: []string{shop}}), "claude a 0")
}

// A line that does not end is read once and in little memory. What it hides is known to be missing.
func TestEndlessLine(t *testing.T) { // not parallel: memory is measured
	path := filepath.Join(t.TempDir(), "t.jsonl")
	writeFile(t, path, claudePrompt+"\n"+readsIt+"\n"+`{"type":"user","message":{"content":"`)
	tr := newTranscript(path, newClaude)
	lookedAt(t, tr, Claude)
	for n := range 12 {
		writeParts(t, path, strings.Repeat("x", 8<<20))
		got := lookedAt(t, tr, Claude)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.Turn.Open != Tool || got.Unread == "" || tr.tail.at != info.Size() {
			t.Fatalf("part %d: %q, unread: %s, read to %d of %d", n, reading(got.Turn), got.Unread, tr.tail.at, info.Size())
		}
	}
	appendFile(t, path, `"}}`+"\n"+goesOn+"\n")
	if got := lookedAt(t, tr, Claude); !got.Turn.Ended || got.Unread != "" {
		t.Errorf("it has ended: %q, unread: %s", reading(got.Turn), got.Unread)
	}
}

// The beginning of a last line is not sought for ever. What such a file shows is missing until it shows something.
func TestLineThatBeginsTooFarAway(t *testing.T) { // not parallel: memory is measured
	path := filepath.Join(t.TempDir(), "t.jsonl")
	writeFile(t, path, claudePrompt+"\n")
	if err := os.Truncate(path, longestSought+64<<20); err != nil {
		t.Skipf("no file of that size here: %v", err)
	}
	tr := newTranscript(path, newClaude)
	if got := lookedAt(t, tr, Claude); got.Unread == "" || got.Turn.Open != Nothing {
		t.Errorf("%q, unread: %s", reading(got.Turn), got.Unread)
	}
	appendFile(t, path, "\n")
	if got := lookedAt(t, tr, Claude); got.Unread == "" {
		t.Error("its end does not say what it was")
	}
	appendFile(t, path, readsIt+"\n")
	if got := lookedAt(t, tr, Claude); got.Unread != "" || got.Turn.Open != Tool {
		t.Errorf("a call shows what is open: %q, unread: %s", reading(got.Turn), got.Unread)
	}
}

// A line of which not even an outline can be kept is missing, until the model says something.
func TestLineWithTooManyParts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	writeFile(t, path, claudePrompt+"\n"+readsIt+"\n")
	writeParts(t, path, `{"type":"user","toolUseResult":[`, strings.Repeat(`{"a":{"b":1}},`, 900_000), `{}],"message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}`, "\n")
	tr := newTranscript(path, newClaude)
	if err := tr.look(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := tr.session(Claude); got.Unread == "" {
		t.Errorf("nothing is missing of %q", reading(got.Turn))
	}
	appendFile(t, path, goesOn+"\n")
	if err := tr.look(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := tr.session(Claude); got.Unread != "" || !got.Turn.Ended {
		t.Errorf("%q, unread: %s", reading(got.Turn), got.Unread)
	}
}

// A call is over when the model gives another answer, even if its result was never seen.
func TestCallsEndWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	claude := func(id, blocks string) string {
		return `{"type":"assistant","message":{"id":"` + id + `","stop_reason":"tool_use","content":[` + blocks + `]}}`
	}
	use := func(id string) string {
		return `{"type":"tool_use","id":"` + id + `","name":"Bash","input":{"command":"make"}}`
	}
	const (
		started = `{"type":"event_msg","payload":{"type":"task_started"}}`
		used    = `{"type":"token_usage_record","payload":{}}`
		thinks  = `{"type":"response_item","payload":{"type":"reasoning"}}`
		says    = `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"text":"Now"}]}}`
	)
	codex := func(id string) string {
		return `{"type":"response_item","payload":{"type":"function_call","name":"exec_command","call_id":"` + id + `","arguments":"{\"cmd\":\"make\"}"}}`
	}
	returned := func(id string) string {
		return `{"type":"response_item","payload":{"type":"function_call_output","call_id":"` + id + `","output":"ok"}}`
	}
	qwen := func(parts string) string {
		return `{"sessionId":"q","cwd":"/x","type":"assistant","message":{"parts":[` + parts + `]}}`
	}
	for name, test := range map[string]struct {
		fresh   func() parser
		records []string
		want    string
	}{
		"claude: two calls of one answer":      {newClaude, []string{claudePrompt, claude("m1", use("a")), claude("m1", use("b"))}, "tool Bash(make)"},
		"claude: the next answer thinks":       {newClaude, []string{claudePrompt, claude("m1", use("a")), claude("m2", `{"type":"thinking"}`)}, "model"},
		"claude: the next answer has a call":   {newClaude, []string{claudePrompt, claude("m1", use("a")), claude("m2", use("b")), strings.ReplaceAll(claudeResult, "t1", "b")}, "model"},
		"claude: one of two results is seen":   {newClaude, []string{claudePrompt, claude("m1", use("a")+","+use("b")), strings.ReplaceAll(claudeResult, "t1", "a")}, "tool Bash(make)"},
		"claude: a question and what follows":  {newClaude, []string{claudePrompt, claude("m1", strings.ReplaceAll(use("a"), "Bash", "AskUserQuestion")), claude("m2", `{"type":"text","text":"Thanks"}`)}, "model"},
		"claude: the end of the next answer":   {newClaude, []string{claudePrompt, claude("m1", use("a")), strings.ReplaceAll(claudeEnd, `"stop_reason"`, `"id":"m2","stop_reason"`)}, "ended"},
		"claude: another session's side lines": {newClaude, []string{claudePrompt, claude("m1", use("a")), strings.Replace(claude("m2", use("b")), "{", `{"isSidechain":true,`, 1)}, "tool Bash(make)"},
		"codex: two calls of one answer":       {newCodex, []string{started, codex("a"), codex("b"), used, returned("a")}, "tool exec_command(make)"},
		"codex: the next answer thinks":        {newCodex, []string{started, codex("a"), codex("b"), used, returned("a"), thinks}, "model"},
		"codex: the next answer says":          {newCodex, []string{started, codex("a"), used, says}, "model"},
		"codex: a call beside a result":        {newCodex, []string{started, codex("a"), codex("b"), returned("b"), codex("c"), used, returned("c")}, "tool exec_command(make) repeats 2/0/0"},
		"qwen: the next answer":                {newQwen, []string{qwen(`{"functionCall":{"id":"a","name":"x"}}`), qwen(`{"thought":true,"text":"hm"}`)}, "model"},
		"gemini: the next answer": {newGemini, []string{`{"sessionId":"g1"}`, `{"id":"1","type":"user","content":"go"}`,
			`{"id":"2","type":"gemini","content":""}`, `{"id":"3","type":"gemini","content":[{"text":"hm","thought":true}]}`}, "model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reading(told(test.fresh(), test.records...)); got != test.want {
				t.Errorf("%q, wanted %q", got, test.want)
			}
		})
	}
}

func TestCallsOfOpenCodeEndWithTheNextAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shop := w.dir("shop")
	o := newOpenCode(t, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
	o.session("s", shop)
	o.message("s", "m1", `{"role":"user"}`)
	o.message("s", "m2", `{"role":"assistant"}`, `{"type":"tool","callID":"c1","tool":"bash","state":{"status":"running","input":{"command":"make"}}}`)
	o.message("s", "m3", `{"role":"assistant"}`, `{"type":"step-start"}`)
	same(t, "the next answer", w.found(NewReader(w.options), Query{Dirs: []string{shop}}), "opencode s 0 model")
}
