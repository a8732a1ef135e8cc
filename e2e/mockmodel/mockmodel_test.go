package mockmodel

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestDecide(t *testing.T) {
	script := Script{}.withDefaults()
	for _, c := range []struct {
		mode Mode
		at   turn
		want move
		text string
	}{
		{Answer, turn{}, say, script.Text},
		{Ask, turn{}, say, script.Ask},
		{Tool, turn{}, run, script.Command},
		{Tool, turn{results: 1}, say, script.Text},
		{Permission, turn{}, runGuard, script.Forbidden},
		{Permission, turn{results: 1}, say, script.Text},
		{Question, turn{}, askUser, script.Ask},
		{Question, turn{results: 1}, say, script.Text},
		{Loop, turn{results: 7}, run, script.Command},
		{Loop, turn{results: 8}, say, script.Text},
		{Hang, turn{}, silence, ""},
		{Hang, turn{side: true}, smallTalk, `{"title": "Check the shop"}`},
		{Stall, turn{}, halfway, script.Text},
		{RateLimit, turn{}, refuse, ""},
		{RateLimit, turn{side: true}, refuse, ""},
		{Overload, turn{}, refuse, ""},
		{Auth, turn{}, refuse, ""},
		{Context, turn{}, refuse, ""},
	} {
		if got, text := script.decide(c.mode, c.at); got != c.want || text != c.text {
			t.Errorf("%s at %+v: %v %q, want %v %q", c.mode, c.at, got, text, c.want, c.text)
		}
	}
}

// post sends a request as a CLI does and returns the status and the events of the answer.
func post(t *testing.T, url, body string) (status int, events []map[string]any) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var event map[string]any
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			t.Fatalf("event %q: %v", data, err)
		}
		events = append(events, event)
	}
	return resp.StatusCode, events
}

// find is the first event of a type.
func find(t *testing.T, events []map[string]any, kind string) map[string]any {
	t.Helper()
	for _, e := range events {
		if e["type"] == kind {
			return e
		}
	}
	t.Fatalf("no event %q in %v", kind, events)
	return nil
}

const (
	anthropicFirst = `{"model":"m","stream":true,"tools":[{}],"messages":[{"role":"user","content":"Check the shop"}]}`
	anthropicAfter = `{"model":"m","stream":true,"tools":[{}],"messages":[{"role":"user","content":"Check the shop"},{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result"}]}]}`
)

func TestAnthropicRunsOneToolAndAnswers(t *testing.T) {
	s := Anthropic(t, Tool, Script{Command: "make check"})
	_, events := post(t, s.URL+"/v1/messages?beta=true", anthropicFirst)
	var input string
	for _, e := range events {
		if d, ok := e["delta"].(map[string]any); ok && d["type"] == "input_json_delta" {
			input += d["partial_json"].(string)
		}
	}
	if !strings.Contains(input, `"make check"`) {
		t.Errorf("tool input %q does not run the command", input)
	}
	if reason := find(t, events, "message_delta")["delta"].(map[string]any)["stop_reason"]; reason != "tool_use" {
		t.Errorf("stop reason %v, want tool_use", reason)
	}
	_, events = post(t, s.URL+"/v1/messages", anthropicAfter)
	if reason := find(t, events, "message_delta")["delta"].(map[string]any)["stop_reason"]; reason != "end_turn" {
		t.Errorf("stop reason after the tool's result %v, want end_turn", reason)
	}
	if s.Turns() != 2 || len(s.Requests()) != 2 {
		t.Errorf("%d turns in %d requests, want 2 in 2", s.Turns(), len(s.Requests()))
	}
}

func TestAnthropicWithoutStream(t *testing.T) {
	s := Anthropic(t, Answer, Script{Text: "All is well."})
	resp, err := http.Post(s.URL+"/v1/messages", "application/json", strings.NewReader(`{"tools":[{}],"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if !strings.Contains(string(body), `"text":"All is well."`) {
		t.Errorf("message %s lacks the text", body)
	}
}

// Each generation of Codex offers its shell under another name; the call must be one it knows.
func TestOpenAICallsTheOfferedShell(t *testing.T) {
	const input = `"input":[{"type":"message","role":"user"}]`
	for _, c := range []struct{ name, request, kind, tool, namespace string }{
		{"exec_command", `{"tools":[{"type":"function","name":"exec_command"}],` + input + `}`, "function_call", "exec_command", ""},
		{"shell_command", `{"tools":[{"type":"function","name":"shell_command"}],` + input + `}`, "function_call", "shell_command", ""},
		{"programs", `{"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]},{"type":"message","role":"user"}]}`, "custom_tool_call", "exec", "functions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := OpenAI(t, Permission, Script{})
			_, events := post(t, s.URL+"/v1/responses", c.request)
			item := find(t, events, "response.output_item.done")["item"].(map[string]any)
			namespace, _ := item["namespace"].(string)
			if item["type"] != c.kind || item["name"] != c.tool || namespace != c.namespace {
				t.Errorf("called %v, want %s %s in namespace %q", item, c.kind, c.tool, c.namespace)
			}
			if text, _ := json.Marshal(item); !strings.Contains(string(text), "require_escalated") {
				t.Errorf("call %s asks nobody", text)
			}
			find(t, events, "response.completed")
		})
	}
}

// Codex wants a title for the thread while the agent's own request hangs.
func TestOpenAISideCallsAreNoTurns(t *testing.T) {
	s := OpenAI(t, Hang, Script{})
	_, events := post(t, s.URL+"/v1/responses", `{"tools":[{"type":"function","name":"exec_command"}],"text":{"format":{"type":"json_schema"}},"input":[]}`)
	find(t, events, "response.completed")
	if s.Turns() != 0 {
		t.Errorf("a side call counts as %d turns", s.Turns())
	}
}

func TestRefusals(t *testing.T) {
	for mode, want := range map[Mode][2]int{
		RateLimit: {429, 429}, Overload: {529, 503}, Auth: {401, 401}, Context: {400, 400},
	} {
		if status, _ := post(t, Anthropic(t, mode, Script{}).URL+"/v1/messages", anthropicFirst); status != want[0] {
			t.Errorf("Anthropic %s: status %d, want %d", mode, status, want[0])
		}
		if status, _ := post(t, OpenAI(t, mode, Script{}).URL+"/v1/responses", `{}`); status != want[1] {
			t.Errorf("OpenAI %s: status %d, want %d", mode, status, want[1])
		}
	}
}

// A request that hangs must not outlive the server, and a provider that heals answers the next one.
func TestHangEndsWithTheServer(t *testing.T) {
	s := Anthropic(t, Hang, Script{})
	over := make(chan error, 1)
	go func() {
		resp, err := http.Post(s.URL+"/v1/messages", "application/json", strings.NewReader(anthropicFirst))
		if err == nil {
			resp.Body.Close()
		}
		over <- err
	}()
	for deadline := time.Now().Add(10 * time.Second); s.Turns() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the request never came")
		}
	}
	select {
	case err := <-over:
		t.Fatalf("the request did not hang: %v", err)
	default:
	}
	s.SetMode(Answer)
	if _, events := post(t, s.URL+"/v1/messages", anthropicFirst); len(events) == 0 {
		t.Error("no answer from the healed provider")
	}
	s.Close()
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Error("the request hangs on after the server is closed")
	}
}
