package agentrun

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
)

func TestTitleStates(t *testing.T) {
	tests := []struct {
		name   string
		titles []string
		want   []agentcli.Status
	}{
		{"Claude Code", []string{"✳ Claude Code", "◐ Claude Code", "✳ Fix the shop"}, []agentcli.Status{agentcli.Idle, agentcli.Busy, agentcli.Idle}},
		{"Claude Code before 2.1", []string{"⠂ Fix the shop", "✳ Fix the shop"}, []agentcli.Status{agentcli.Busy, agentcli.Idle}},
		{"Codex", []string{"shop", "⠋ shop", "⠙ shop", "shop", "[ ! ] Action Required | shop", "[ . ] Action Required | shop", "⠹ shop", "shop"},
			[]agentcli.Status{"", agentcli.Busy, agentcli.Busy, agentcli.Idle, agentcli.Waiting, agentcli.Waiting, agentcli.Busy, agentcli.Idle}},
		{"Codex with a thread's name", []string{"[ ! ] Action Required | Check the shop | shop", "Check the shop | shop"}, []agentcli.Status{agentcli.Waiting, agentcli.Idle}},
		{"Gemini", []string{"◇  Ready (shop)", "✦  Reading files (shop)", "⏲  Working… (shop)", "✋  Action Required (shop)"},
			[]agentcli.Status{agentcli.Idle, agentcli.Busy, agentcli.Busy, agentcli.Waiting}},
		{"others", []string{"me@host: ~/shop", "", "◐half", "vim"}, []agentcli.Status{"", "", "", ""}},
	}
	for _, tt := range tests {
		var read titles
		var got []agentcli.Status
		for _, title := range tt.titles {
			got = append(got, read.read(title))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// What the lines of JSON say, in the order in which they come; the streams as the CLIs write them.
func TestStreams(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	retry := `{"type":"system","subtype":"api_retry","attempt":3,"max_retries":10,"retry_delay_ms":2431.7,"error_status":529,"error":"overloaded","session_id":"s1"}`
	long := `{"type":"result","subtype":"success","is_error":false,"session_id":"s2","result":"` + strings.Repeat("x", lineLimit) + `"}`
	tests := []struct {
		name            string
		lines           []string
		session, failed string
	}{
		{"no JSON at all", []string{"hello", "{broken", `{"id":1}`, `{"type":"`}, "", ""},
		{"Claude Code begins", []string{`{"type":"system","subtype":"init","cwd":"/p","session_id":"s1","tools":[]}`}, "s1", ""},
		{"it tries again", []string{retry}, "s1", ""},
		{"done", []string{`{"type":"result","subtype":"success","is_error":false,"session_id":"s1","result":"ok"}`}, "s1", ""},
		{"too many turns", []string{`{"type":"result","subtype":"error_max_turns","is_error":true}`}, "", "error_max_turns"},
		{"too much money", []string{`{"type":"result","subtype":"error_max_budget_usd","is_error":true,"session_id":"s1","result":"so far","errors":[]}`}, "s1", "error_max_budget_usd"},
		{"a success that is none", []string{`{"type":"result","subtype":"success","is_error":true,"result":"API Error: 401 login expired"}`}, "", "API Error: 401 login expired"},
		{"a long result", []string{long}, "s2", ""},
		{"Codex begins", []string{`{"type":"thread.started","thread_id":"t1"}`, `{"type":"turn.started"}`}, "t1", ""},
		{"Codex tries again", []string{`{"type":"error","message":"Reconnecting... 4/5 (unexpected status 429 Too Many Requests)"}`}, "", ""},
		{"Codex gives up", []string{`{"type":"error","message":"Reconnecting... 5/5"}`, `{"type":"turn.failed","error":{"message":"stream error"}}`}, "", "stream error"},
		{"Codex is done", []string{`{"type":"item.completed","item":{}}`, `{"type":"turn.completed","usage":{}}`}, "", ""},
		{"another turn", []string{`{"type":"turn.failed","error":{"message":"stream error"}}`, `{"type":"item.started","item":{}}`}, "", ""},
		{"Gemini", []string{`{"type":"init","session_id":"g1","model":"m"}`, `{"type":"result","status":"error","error":{"type":"unknown","message":"quota"}}`}, "g1", "quota"},
	}
	for _, tt := range tests {
		s := newSeen(Report{})
		for _, line := range tt.lines {
			s.output(0, []byte(line+"\r\n"), at, unshared)
		}
		if r := s.snapshot(); r.Failed != tt.failed || r.Session != tt.session {
			t.Errorf("%s: session %q, error %q; want %q, %q", tt.name, r.Session, r.Failed, tt.session, tt.failed)
		}
	}
}

func TestLastLines(t *testing.T) {
	const dialog = "\x1b[2J\x1b[H╭────────────╮\r\n│ Bash       │\r\n│ Proceed?   │\r\n│ ❯ 1. Yes   │\r\n╰────────────╯"
	tests := []struct {
		name, output string
		rows, cols   int
		want         []string
	}{
		{"lines", "one\r\ntwo\r\n\r\nthree", 10, 80, []string{"one", "two", "three"}},
		{"a dialog in its border", dialog, 10, 40, []string{"Bash", "Proceed?", "❯ 1. Yes"}},
		{"colours say nothing", "\x1b[31mred\x1b[0m \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", 10, 80, []string{"red link"}},
		{"a progress bar is the last", "10%\r20%\r100% done", 10, 80, []string{"100% done"}},
		{"a frame drawn over the last", "frame 1\r\nold line\x1b[1A\r\x1b[2Kframe 2\x1b[K", 10, 80, []string{"frame 2", "old line"}},
		{"another screen hides the first", "shell\r\n\x1b[?1049hagent", 10, 80, []string{"agent"}},
		{"scrolled away", "1a\r\n2a\r\n3a\r\n4a", 3, 80, []string{"2a", "3a", "4a"}},
		{"a scrolling part", "\x1b[2;3rhead\r\n1a\r\n2a\r\n3a", 4, 80, []string{"head", "2a", "3a"}},
		{"wrapped", "abcdefghij", 5, 4, []string{"abcd", "efgh", "ij"}},
		{"deleted and inserted", "abcdef\x1b[3D\x1b[2P\x1b[1@X", 3, 20, []string{"abcXf"}},
		{"a picture", "\x1b_Gf=100;AAAA\x1b\\behind", 5, 80, []string{"behind"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, drawn(tt.rows, tt.cols, tt.output).lastLines()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// The end of a long output is what is kept, however it came.
func TestTail(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	for _, size := range []int{1, 7, 4096, tailSize, 3 * tailSize} {
		s := newSeen(Report{})
		var text strings.Builder
		for i := 0; text.Len() < 2*tailSize; i++ {
			fmt.Fprintf(&text, "line %d\n", i)
		}
		output := text.String() + "the end\n"
		for b := []byte(output); len(b) > 0; b = b[min(size, len(b)):] {
			s.output(0, b[:min(size, len(b))], at, unshared)
		}
		r := s.snapshot()
		if len(r.LastLines) != lastCount || r.LastLines[lastCount-1] != "the end" {
			t.Errorf("in pieces of %d: %q", size, r.LastLines)
		}
		if r.Bytes != int64(len(output)) {
			t.Errorf("in pieces of %d: %d bytes, want %d", size, r.Bytes, len(output))
		}
	}
}

// What is kept begins behind a line, or a sequence, that has lost its beginning.
func TestTailBeginsWhole(t *testing.T) {
	for _, begun := range []string{"\n", "\x1b[2K\r"} {
		s := newSeen(Report{})
		s.output(0, []byte("lost\n"+strings.Repeat("8;5", tailSize)+begun+"whole\n"), time.Unix(1_800_000_000, 0), unshared)
		if diff := cmp.Diff([]string{"whole"}, s.snapshot().LastLines); diff != "" {
			t.Errorf("behind %q: %s", begun, diff)
		}
	}
}

func TestNotices(t *testing.T) {
	s := newSeen(Report{})
	at := time.Unix(1_800_000_000, 0)
	for i, text := range []string{"READY=1\nSTATUS=at work", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=60000000"} {
		n, err := heartbeat.ParseNotice([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s.notice(7, n, at.Add(time.Duration(i)*time.Second))
	}
	want := &Notice{Ready: true, Status: "at work", WatchdogAt: at.Add(time.Second), Until: at.Add(62 * time.Second), PID: 7, At: at.Add(2 * time.Second)}
	if diff := cmp.Diff(want, s.snapshot().Notice); diff != "" {
		t.Error(diff)
	}
}

// A report is written once a second at most, at once when something has changed, and not at all while nothing is new.
func TestWhenReportsAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // the detector does not take the passing of time for an order
		began := time.Now()
		var written []time.Duration
		fails := 0
		s := newSeen(Report{Version: 1, PID: 1})
		r := record(s, func(Report) error {
			mu.Lock()
			defer mu.Unlock()
			if fails > 0 {
				fails--
				return errors.New("disk full")
			}
			written = append(written, time.Since(began))
			return nil
		})
		check := func(what string, want ...time.Duration) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(want, written); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
			began, written = time.Now(), nil
		}
		check("at the beginning", 0)
		time.Sleep(time.Hour)
		check("while nothing happens")

		for range 30 { // three seconds of output
			s.output(0, []byte("x"), time.Now(), unshared)
			time.Sleep(100 * time.Millisecond)
		}
		check("output", 0, time.Second, 2*time.Second, 3*time.Second)
		time.Sleep(time.Hour)
		check("when nothing more comes")

		s.output(0, []byte("x"), time.Now(), unshared)
		time.Sleep(200 * time.Millisecond)
		s.output(0, []byte("\x1b]0;◐ x\x07"), time.Now(), unshared)
		check("a title", 0, 200*time.Millisecond)
		for i := range 20 { // it asks, and goes on
			s.output(0, []byte([]string{"\x1b]0;[ ! ] Action Required | x\x07", "\x1b]0;⠋ x\x07"}[i%2]), time.Now(), unshared)
			time.Sleep(10 * time.Millisecond)
		}
		check("many titles", 100*time.Millisecond, 200*time.Millisecond)
		time.Sleep(time.Hour)
		check("when no more come")

		mu.Lock()
		fails = 2
		mu.Unlock()
		s.output(0, []byte("\x07"), time.Now(), unshared)
		time.Sleep(2500 * time.Millisecond)
		check("a disk that is full for a while", 2*time.Second)
		if err := r.close(); err != nil {
			t.Error(err)
		}
		check("at the end", 0)
	})
}
