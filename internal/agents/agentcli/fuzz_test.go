package agentcli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// sane checks what must hold for every turn, whatever the file contains.
func sane(t *testing.T, turn Turn) {
	t.Helper()
	if turn.Ended && turn.Open != Nothing {
		t.Errorf("ended, and %s is open", turn.Open)
	}
	if !turn.Ended && (turn.EndedAsking || turn.Interrupted) {
		t.Error("asking or interrupted at an end that there is not")
	}
	for _, text := range []string{turn.LastText, turn.Error.Text, turn.ToolInput} {
		if len(text) > textKept || !utf8.ValidString(text) {
			t.Errorf("a text of %d bytes: %q", len(text), text)
		}
	}
	if turn.Tokens < 0 || turn.Turns < 0 || turn.Error.Attempt < 0 || turn.Error.Max < 0 || turn.CostUSD < 0 {
		t.Errorf("negative figures: %+v", turn)
	}
	for _, at := range []time.Time{turn.LastAt, turn.OpenAt, turn.ProgressAt, turn.Error.Until, turn.Error.RetryAt} {
		if !at.IsZero() && (at.Year() < 1900 || at.Year() > 4000) {
			t.Errorf("a time out of this world: %v", at)
		}
	}
}

// fuzzParser feeds a parser, begun with a recording, with anything.
func fuzzParser(f *testing.F, recordings string, fresh func() parser) {
	paths, err := filepath.Glob(recordings)
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if len(line) < 4000 {
				f.Add(line)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p := fresh()
		for line := range bytes.Lines(text) {
			p.line(bytes.TrimSpace(line))
			p.line(bytes.TrimSpace(line))
			sane(t, p.now().snapshot())
		}
		if n := len(p.now().open); n > openCalls {
			t.Errorf("%d open calls", n)
		}
		if a := p.what(); a.dir != "" && !filepath.IsAbs(a.dir) {
			t.Errorf("a directory that is none: %q", a.dir)
		}
	})
}

func FuzzClaude(f *testing.F) { fuzzParser(f, "testdata/claude/*/transcript.jsonl", newClaude) }
func FuzzCodex(f *testing.F)  { fuzzParser(f, "testdata/codex/*/transcript.jsonl", newCodex) }

func FuzzGemini(f *testing.F) {
	for _, line := range []string{
		`{"id":"2","type":"gemini","content":"x","tokens":{"total":100},"toolCalls":[{"id":"c1","name":"replace","args":{},"status":"success","result":[]}]}`,
		`{"id":"4","type":"error","content":"[API Error: {\"error\":{\"code\":429}}]"}`,
		`{"sessionId":"g1","messages":[{"id":"1","type":"user","content":"go"},{"sessionId":"x","messages":[]}]}`,
	} {
		f.Add([]byte(line))
	}
	fuzzParser(f, "testdata/gemini/*/transcript.jsonl", newGemini)
}

func FuzzQwenTranscript(f *testing.F) { fuzzParser(f, "testdata/qwen/*/transcript.jsonl", newQwen) }

func FuzzOpenCode(f *testing.F) {
	f.Add(`{"role":"assistant","tokens":{"input":10},"cost":0.25,"error":{"name":"APIError","data":{"message":"slow","statusCode":429}}}`,
		`{"type":"tool","callID":"c1","tool":"bash","state":{"status":"completed","input":{"command":"make"},"output":"ok","time":{"start":1795266900000,"end":1795266990000}}}`)
	f.Add(`{"role":"user"}`, `{"type":"compaction","auto":"yes"}`)
	f.Add(`{"role":"assistant","finish":"stop","time":{"completed":-1},"tokens":{"input":9e300},"cost":-1}`, `{"type":"step-finish","reason":"stop"}`)
	w := newWorld(f)
	shop := w.dir("shop")
	o := newOpenCode(f, filepath.Join(w.options.Places[OpenCode], openCodeDatabase))
	o.session("s", shop)
	r := NewReader(w.options)
	f.Fuzz(func(t *testing.T, message, part string) {
		o.t = t
		o.message("s", "m1", message, part, part)
		forgetOpenCode(r)
		sessions, err := r.Sessions(Query{Dirs: []string{shop}})
		if err != nil || len(sessions) != 1 {
			t.Fatalf("%d sessions: %v", len(sessions), err)
		}
		sane(t, sessions[0].Turn)
	})
}

func FuzzClaudeStateFile(f *testing.F) {
	f.Add([]byte(`{"pid":7,"sessionId":"s","cwd":"/home/u/shop","procStart":"155160","status":"waiting","waitingFor":"permission prompt","statusUpdatedAt":1795266902750}`))
	f.Add([]byte(`{"pid":1e400}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, ok := parseClaudeSession(text)
		if !ok {
			return
		}
		var s Session
		file.show(&s)
		if s.PID <= 0 || !filepath.IsAbs(s.Dir) || (s.Status == Waiting) != (s.WaitingFor != "") {
			t.Errorf("%+v", s)
		}
		if strings.ContainsAny(claudeFolder(s.Dir), `/\.`) {
			t.Errorf("%q leads elsewhere", s.Dir)
		}
	})
}

func FuzzGeminiProjects(f *testing.F) {
	f.Add([]byte(`{"projects":{"/home/u/shop":"shop"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		folders, _ := parseGeminiProjects(text)
		for dir, folder := range folders {
			if strings.ContainsAny(folder, `/`) || folder == ".." || !filepath.IsAbs(dir) {
				t.Errorf("%s leads elsewhere: %q", dir, folder)
			}
		}
	})
}

func FuzzLimitLifted(f *testing.F) {
	f.Add("You've hit your limit · resets Nov 25 at 3:30pm (Europe/Berlin)")
	f.Add("Try again in 2 days 3 hours 5 minutes.")
	f.Add("limit reached|1795280400")
	at := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		until := limitLifted(text, at, time.UTC)
		if !until.IsZero() && !strings.Contains(text, "|") && (until.Before(at.AddDate(0, -7, 0)) || until.After(at.AddDate(4, 0, 0))) {
			t.Errorf("%q: %v", text, until)
		}
	})
}

func FuzzExcerpt(f *testing.F) {
	f.Add("Which database? (a/b)", 10)
	f.Add(strings.Repeat("ä", 400), 399)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 8 + max(0, limit)%1000
		for _, short := range []string{excerpt(text, limit), ending(text, limit)} {
			if len(short) > limit || !utf8.ValidString(short) {
				t.Errorf("%q: %q", text, short)
			}
		}
		asks(text)
		inputText([]byte(text))
	})
}

func FuzzRecognise(f *testing.F) {
	f.Add("node\x00-r\x00x\x00/usr/bin/codex\x00exec")
	f.Add("npx\x00-y\x00@anthropic-ai/claude-code@2")
	f.Add("\x00")
	f.Fuzz(func(t *testing.T, args string) {
		kind, ok := Recognise(strings.Split(args, "\x00"))
		if ok != (kind != "") {
			t.Errorf("%q: %q %v", args, kind, ok)
		}
	})
}
