package hooks

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// payloads are what CLIs said, shortened: Claude Code 2.1.330, Codex 0.169.0 as seen, Gemini CLI 0.61.0 as documented.
var payloads = []struct {
	vendor, payload string
	want            Event
}{
	{
		"claude",
		`{"session_id":"s1","transcript_path":"/t.jsonl","cwd":"/shop","prompt_id":"p","permission_mode":"default",
		"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"touch approved.txt","description":"Make a file"},"permission_suggestions":[]}`,
		Event{Vendor: "claude", Name: "PermissionRequest", Session: "s1", Dir: "/shop", Transcript: "/t.jsonl", Mode: "default", Tool: "Bash", Input: "touch approved.txt"},
	},
	{
		"claude", `{"session_id":"s1","cwd":"/shop","hook_event_name":"Notification","message":"Claude is waiting","notification_type":"idle_prompt"}`,
		Event{Vendor: "claude", Name: "Notification", Session: "s1", Dir: "/shop", Notification: "idle_prompt", Text: "Claude is waiting"},
	},
	{
		"claude", `{"session_id":"s1","hook_event_name":"StopFailure","error":"rate_limit","last_assistant_message":"x"}`,
		Event{Vendor: "claude", Name: "StopFailure", Session: "s1", Reason: "rate_limit", Text: "x"},
	},
	{
		"codex", `{"session_id":"s2","transcript_path":null,"cwd":"/shop","hook_event_name":"Stop","turn_id":"t","stop_hook_active":false,"last_assistant_message":null}`,
		Event{Vendor: "codex", Name: "Stop", Session: "s2", Dir: "/shop"},
	},
	{
		"gemini", `{"session_id":"s3","cwd":"/shop","hook_event_name":"AfterAgent","timestamp":"2026-11-21T12:00:00Z","prompt":"p","prompt_response":"Which one?"}`,
		Event{Vendor: "gemini", Name: "AfterAgent", Session: "s3", Dir: "/shop", Text: "Which one?"},
	},
	{ // members of another kind than today's
		"claude", `{"session_id":7,"cwd":["x"],"hook_event_name":"Stop","error":{"a":1},"tool_input":[1, 2]}`,
		Event{Vendor: "claude", Name: "Stop", Input: "[1,2]"},
	},
}

func TestParse(t *testing.T) {
	for _, tt := range payloads {
		c, err := parse(VendorNamed(tt.vendor), []byte(tt.payload), Redact)
		if err != nil {
			t.Errorf("%s: %v", tt.payload, err)
			continue
		}
		if diff := cmp.Diff(tt.want, c.Event); diff != "" {
			t.Errorf("%s:\n%s", tt.payload, diff)
		}
	}
	for _, odd := range []string{"", "{}", "[]", "nonsense", `{"hook_event_name":3}`} {
		if _, err := parse(VendorNamed("codex"), []byte(odd), Redact); !errors.Is(err, ErrPayload) {
			t.Errorf("%q: error %v", odd, err)
		}
	}
}

// What a person approves is what will run: nothing hidden, nothing left out.
func TestDescribe(t *testing.T) {
	tests := map[string]struct{ input, want, says string }{
		"command":         {`{"command":"ls -l","description":"List"}`, "ls -l", "List"},
		"more than it":    {`{"command":"ls","dangerouslyDisableSandbox":true,"timeout":5}`, "ls\ndangerouslyDisableSandbox: true\ntimeout: 5", ""},
		"an edit":         {`{"file_path":"/a","new_string":"x\ny"}`, "file_path: /a\nnew_string: x\ny", ""},
		"control":         {`{"command":"echo hi\u001b[2K\rls"}`, `echo hi\u{1b}[2K\u{d}ls`, ""},
		"reversed text":   {`{"command":"rm \u202ex\u202c"}`, `rm \u{202e}x\u{202c}`, ""},
		"zero width":      {`{"command":"r\u200bm"}`, `r\u{200b}m`, ""},
		"command no text": {`{"command":["rm","-rf"]}`, `command: ["rm","-rf"]`, ""},
		"nothing":         {`{}`, "", ""},
	}
	for name, tt := range tests {
		text, says := describe(json.RawMessage(tt.input))
		if text != tt.want || says != tt.says {
			t.Errorf("%s: %q, %q", name, text, says)
		}
	}
}

func TestCut(t *testing.T) {
	s := strings.Repeat("ä", 50)
	for limit := 3; limit < 110; limit++ {
		for _, got := range []string{head(s, limit), tail(s, limit)} {
			if len(got) > limit || !utf8.ValidString(got) || limit >= 100 && got != s {
				t.Errorf("%d: %q", limit, got)
			}
		}
	}
}

func TestRedact(t *testing.T) {
	// The samples are put together here, so that no scanner takes this file for a leak.
	tests := map[string]string{
		"curl -H 'Authorization: Bearer " + "abc.def-123'":            "curl -H 'Authorization: Bearer [redacted]'",
		"git clone https://ada:" + "pw1@example.org/x":                "git clone https://ada:[redacted]@example.org/x",
		"export DB_PASSWORD=" + "hunter2; ls":                         "export DB_PASSWORD=[redacted]; ls",
		"mysql --password " + "hunter2 -u ada":                        "mysql --password [redacted] -u ada",
		`{"api_key": "` + `k1"}`:                                      `{"api_key": [redacted]}`,
		"aws AKIA" + "ABCDEFGHIJKLMNOP":                               "aws [redacted]",
		"x gh" + "p_abcdefghijklmnopqrstuvwxyz0123 y":                 "x [redacted] y",
		"sk-ant-" + strings.Repeat("a1", 12):                          "[redacted]",
		"1234567890:" + "AAabcdefghijklmnopqrstuvwxyz0123456":         "[redacted]",
		"curl http://localhost:8080/a?b=c":                            "curl http://localhost:8080/a?b=c",
		"go test ./... -run TestTokens":                               "go test ./... -run TestTokens",
		"pip install sk-learn":                                        "pip install sk-learn",
		"-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----": "-----BEGIN PRIVATE KEY-----[redacted]",
	}
	for text, want := range tests {
		if got := Redact(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range payloads {
		f.Add([]byte(p.payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		c, err := parse(VendorNamed("claude"), payload, Redact)
		if err != nil {
			return
		}
		if len(c.Input) > maxInput || len(c.Text) > maxText || len(c.Name) > maxName {
			t.Fatalf("more is kept than promised: %d, %d, %d", len(c.Input), len(c.Text), len(c.Name))
		}
		for _, s := range []string{c.full, c.Text, c.Session, c.Dir, c.description} {
			if strings.ContainsFunc(s, hidden) {
				t.Fatalf("hidden characters are left in %q", s)
			}
		}
		text, err := json.Marshal(c.Event)
		if err != nil || len(text) > maxFile {
			t.Fatalf("%d bytes, error %v", len(text), err)
		}
	})
}

// A file of megabytes that is to be written costs a hook no time, and nobody is asked about it.
func TestLargeInputIsCutBeforeItIsLookedThrough(t *testing.T) {
	looked := 0
	redact := func(s string) string {
		looked += len(s)
		return s
	}
	payload := `{"hook_event_name":"PermissionRequest","tool_name":"Write","tool_input":{"content":"` + strings.Repeat("x", 4<<20) +
		`"},"last_assistant_message":"` + strings.Repeat("y", 1<<20) + `"}`
	c, err := parse(VendorNamed("claude"), []byte(payload), redact)
	if err != nil {
		t.Fatal(err)
	}
	if looked > 4*maxLooked || !c.long {
		t.Errorf("looked through %d bytes, %d are left", looked, len(c.full))
	}
}
