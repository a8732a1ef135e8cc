package mockmodel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
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
		{Background, turn{}, runBehind, script.Command},
		{Background, turn{results: 1}, say, script.Text},
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
		{Credit, turn{}, refuse, ""},
		{Invalid, turn{}, refuse, ""},
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
		if data == "[DONE]" {
			break // the end of a stream of Chat Completions, which has no event of JSON
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
		RateLimit: {429, 429}, Overload: {529, 503}, Auth: {401, 401}, Context: {400, 400}, Credit: {400, 429}, Invalid: {400, 400},
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

// ordered runs Call beside the test and returns what it comes to.
func ordered(t *testing.T, s *Server, c Call) <-chan Result {
	t.Helper()
	got := make(chan Result, 1)
	go func() {
		r, err := s.Call(t.Context(), c)
		if err != nil {
			t.Errorf("call %s: %v", c.name(), err)
		}
		got <- r
	}()
	return got
}

// tool is the tool call in an answer of the Anthropic server.
func tool(t *testing.T, events []map[string]any) (id, name, input string) {
	t.Helper()
	for _, e := range events {
		if b, ok := e["content_block"].(map[string]any); ok && b["type"] == "tool_use" {
			id, name = b["id"].(string), b["name"].(string)
		}
		if d, ok := e["delta"].(map[string]any); ok && d["type"] == "input_json_delta" {
			input += d["partial_json"].(string)
		}
	}
	if id == "" {
		t.Fatalf("no tool call in %v", events)
	}
	return id, name, input
}

// A tool that the client defers is asked for before it is called.
func TestAnthropicCallsWhatItIsTold(t *testing.T) {
	s := Anthropic(t, Told, Script{})
	got := ordered(t, s, Call{Server: "shop", Tool: "look", Args: map[string]any{"value": "x"}})
	const head = `{"stream":true,"tools":[{"name":"ToolSearch"}],"messages":[{"role":"user","content":"Go"}`
	_, events := post(t, s.URL+"/v1/messages", head+`]}`)
	id, name, input := tool(t, events)
	if name != "ToolSearch" || !strings.Contains(input, "select:mcp__shop__look") {
		t.Fatalf("called %s with %s, want ToolSearch for the tool", name, input)
	}
	found := head + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":[{"type":"tool_reference","tool_name":"mcp__shop__look"}]}]}`
	_, events = post(t, s.URL+"/v1/messages", found+`]}`)
	id, name, input = tool(t, events)
	if name != "mcp__shop__look" || input != `{"value":"x"}` {
		t.Errorf("called %s with %s", name, input)
	}
	said := make(chan error, 1)
	go func() { said <- s.Say(t.Context(), "Bye") }()
	_, events = post(t, s.URL+"/v1/messages", found+`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","is_error":true,"content":"Connection closed"}]}]}`)
	if r := <-got; r.Text != "Connection closed" || !r.Failed {
		t.Errorf("result %+v", r)
	}
	if err := <-said; err != nil || find(t, events, "content_block_delta")["delta"].(map[string]any)["text"] != "Bye" {
		t.Errorf("the turn's end: %v, %v", err, events)
	}
}

// Codex' models of today call from a program; those before search for the tool, which comes in its server's namespace.
func TestOpenAICallsWhatItIsTold(t *testing.T) {
	look := Call{Server: "shop", Tool: "look", Args: map[string]any{"value": "x"}}
	t.Run("program", func(t *testing.T) {
		s := OpenAI(t, Told, Script{})
		got := ordered(t, s, look)
		const tools = `"tools":[{"type":"custom","name":"exec"}],"input":[{"type":"message","role":"user"}`
		_, events := post(t, s.URL+"/v1/responses", `{`+tools+`]}`)
		item := find(t, events, "response.output_item.done")["item"].(map[string]any)
		if source, _ := item["input"].(string); !strings.Contains(source, `tools.mcp__shop__look({"value":"x"})`) {
			t.Fatalf("program %q does not call the tool", source)
		}
		go func() { _ = s.Say(t.Context(), "Bye") }() // for the request that brings the result
		post(t, s.URL+"/v1/responses", `{`+tools+`,{"type":"custom_tool_call_output","call_id":"`+item["call_id"].(string)+`","output":[{"type":"input_text","text":"look x 1"}]}]}`)
		if r := <-got; r.Text != "look x 1" {
			t.Errorf("result %+v", r)
		}
	})
	t.Run("search", func(t *testing.T) {
		s := OpenAI(t, Told, Script{})
		got := ordered(t, s, look)
		const tools = `"tools":[{"type":"tool_search"}],"input":[{"type":"message","role":"user"}`
		_, events := post(t, s.URL+"/v1/responses", `{`+tools+`]}`)
		item := find(t, events, "response.output_item.done")["item"].(map[string]any)
		if item["type"] != "tool_search_call" {
			t.Fatalf("%v searches nothing", item)
		}
		found := `{` + tools + `,{"type":"tool_search_output","call_id":"` + item["call_id"].(string) + `","tools":[{"type":"namespace","name":"mcp__shop","tools":[{"type":"function","name":"look"}]}]}`
		_, events = post(t, s.URL+"/v1/responses", found+`]}`)
		item = find(t, events, "response.output_item.done")["item"].(map[string]any)
		if item["type"] != "function_call" || item["name"] != "look" || item["namespace"] != "mcp__shop" {
			t.Fatalf("%v does not call the tool", item)
		}
		go func() { _ = s.Say(t.Context(), "Bye") }()
		post(t, s.URL+"/v1/responses", found+`,{"type":"function_call_output","call_id":"`+item["call_id"].(string)+`","output":"look x 1"}]}`)
		if r := <-got; r.Text != "look x 1" {
			t.Errorf("result %+v", r)
		}
	})
}

// A call that is told to nobody, or never answered, ends with its context and with the server.
func TestToldEndsInTime(t *testing.T) {
	s := Anthropic(t, Told, Script{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Call(ctx, Call{Server: "shop", Tool: "look"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("call without an agent: %v", err)
	}
	over := make(chan error, 1)
	go func() { over <- s.Say(t.Context(), "Bye") }()
	s.Close()
	if err := <-over; !errors.Is(err, errClosed) {
		t.Errorf("end of turn on a closed server: %v", err)
	}
}

// Of two agents with one model, each is told what is meant for it, whichever asks first.
func TestToldByPrompt(t *testing.T) {
	s := Anthropic(t, Told, Script{Prompts: []string{"Count", "Check"}})
	answers := map[string]chan string{"Check": make(chan string, 1), "Count": make(chan string, 1)}
	for prompt, answer := range answers {
		go func() {
			resp, err := http.Post(s.URL+"/v1/messages", "application/json", strings.NewReader(`{"stream":true,"tools":[{"name":"Bash"}],"messages":[{"role":"user","content":"`+prompt+`"}]}`))
			if err != nil {
				answer <- err.Error()
				return
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			answer <- string(text)
		}()
	}
	for _, prompt := range []string{"Check", "Count"} {
		if err := s.SayTo(t.Context(), prompt, "for "+prompt); err != nil {
			t.Fatal(err)
		}
		if got := <-answers[prompt]; !strings.Contains(got, "for "+prompt) {
			t.Errorf("the agent with %q was told %s", prompt, got)
		}
	}
}
