package hooks

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
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
		Event{
			Vendor: "claude", Name: "PermissionRequest", Session: "s1", Dir: "/shop", Tool: "Bash",
			Input: "touch approved.txt\ndescription: Make a file",
		},
	},
	{
		"claude", `{"session_id":"s1","cwd":"/shop","hook_event_name":"Notification","message":"Claude is waiting","notification_type":"idle_prompt"}`,
		Event{Vendor: "claude", Name: "Notification", Session: "s1", Dir: "/shop", Text: "Claude is waiting"},
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
		c, err := parse(VendorNamed(tt.vendor), []byte(tt.payload), secret.Redact)
		if err != nil {
			t.Errorf("%s: %v", tt.payload, err)
			continue
		}
		if diff := cmp.Diff(tt.want, c.Event); diff != "" {
			t.Errorf("%s:\n%s", tt.payload, diff)
		}
	}
	for _, odd := range []string{"", "{}", "[]", "nonsense", `{"hook_event_name":3}`} {
		if _, err := parse(VendorNamed("codex"), []byte(odd), secret.Redact); !errors.Is(err, ErrPayload) {
			t.Errorf("%q: error %v", odd, err)
		}
	}
}

// What a person approves is what will run: nothing hidden, nothing left out.
func TestDescribe(t *testing.T) {
	tests := map[string]struct{ input, want string }{
		"command":         {`{"command":"ls -l","description":"List"}`, "ls -l\ndescription: List"},
		"more than it":    {`{"command":"ls","description":"List","dangerouslyDisableSandbox":true,"timeout":5}`, "ls\ndangerouslyDisableSandbox: true\ntimeout: 5\ndescription: List"},
		"an edit":         {`{"file_path":"/a","new_string":"x\ny"}`, "file_path: /a\nnew_string: x\ny"},
		"control":         {`{"command":"echo hi\u001b[2K\rls"}`, `echo hi\u{1b}[2K\u{d}ls`},
		"reversed text":   {`{"command":"rm \u202ex\u202c"}`, `rm \u{202e}x\u{202c}`},
		"zero width":      {`{"command":"r\u200bm"}`, `r\u{200b}m`},
		"blank letters":   {`{"command":"r\u3164m\u00a0x"}`, `r\u{3164}m\u{a0}x`},
		"a written mark":  {`{"command":"echo \\u{202e}"}`, `echo \u{5c}u{202e}`},
		"command no text": {`{"command":["rm","-rf"]}`, `command: ["rm","-rf"]`},
		"nothing":         {`{}`, ""},
	}
	for name, tt := range tests {
		if text := describe(json.RawMessage(tt.input)); text != tt.want {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// unescape is the inverse of Escape, written from its description.
func unescape(s string) string {
	return regexp.MustCompile(`\\u\{([0-9a-f]+)\}`).ReplaceAllStringFunc(s, func(one string) string {
		n, _ := strconv.ParseUint(one[3:len(one)-1], 16, 32)
		return string(rune(n))
	})
}

// nasty are texts of which a screen could hide something, or that look like what Escape writes.
var nasty = rapid.SampledFrom([]string{
	"ls", " ", "\n", "\t", "\r", "\x1b[2K", "\u202e", "\u200b", "\u3164", "\u00a0", `\`, `\u{`, `\u{5c}`, "}", "💥", "é", "\u200d", ": ", "description: ", "\x00",
})

// The shown text of an input can be converted back to every byte of it, and contains nothing invisible.
func TestEverythingOfAnInputIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := map[string]string{}
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			name := rapid.SampledFrom([]string{"command", "description", "file_path", "run\u202e"}).Draw(t, "name")
			members[name] = strings.Join(rapid.SliceOfN(nasty, 0, 12).Draw(t, "value"), "")
		}
		input, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		shown := describe(input)
		if strings.ContainsFunc(shown, hidden) {
			t.Fatalf("hidden characters in %q", shown)
		}
		for name, value := range members {
			line := Escape(name) + ": " + Escape(value)
			if name == "command" {
				line = Escape(value)
			}
			if !strings.Contains(shown, line) || unescape(Escape(value)) != value || unescape(Escape(name)) != name {
				t.Fatalf("%q of %q is not in %q", value, name, shown)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, p := range payloads {
		f.Add([]byte(p.payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		c, err := parse(VendorNamed("claude"), payload, secret.Redact)
		if err != nil {
			return
		}
		if len(c.Input) > maxInput || len(c.Text) > maxText || len(c.Name) > maxName {
			t.Fatalf("more is kept than promised: %d, %d, %d", len(c.Input), len(c.Text), len(c.Name))
		}
		for _, s := range []string{c.full, c.Text, c.Session, c.Dir} {
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

// A file of megabytes that is to be written does not slow down a hook, and the request is not passed on.
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
	if looked > 4*maxLooked || c.Unasked != unaskedLong {
		t.Errorf("looked through %d bytes, %d are left", looked, len(c.full))
	}
}

// Of an input that is longer than what is read, such as one with a document as the result, what comes before counts.
func TestAnInputThatIsCut(t *testing.T) {
	head := `{"session_id":"s","cwd":"/home/u/shop","hook_event_name":"PostToolUse","tool_name":"Read","tool_input":{"file_path":"plan.pdf"},"tool_response":"`
	cut := head + strings.Repeat("QUJD", MaxPayload/4)
	c, err := parse(VendorNamed("claude"), []byte(cut[:MaxPayload]), secret.Redact)
	if err != nil || c.Name != "PostToolUse" || c.Session != "s" || c.Tool != "Read" || !strings.Contains(c.Input, "plan.pdf") {
		t.Errorf("%+v, %v", c, err)
	}
	for name, text := range map[string]string{"no object": "[" + cut, "no name": `{"session_id":"` + cut, "not cut, and half of it": head} {
		if c, err := parse(VendorNamed("claude"), []byte(text[:min(len(text), MaxPayload)]), secret.Redact); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}
