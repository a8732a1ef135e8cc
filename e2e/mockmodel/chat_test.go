package mockmodel

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// answer posts a request and returns the whole answer.
func answer(t *testing.T, url, body string) (status int, header http.Header, text string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(all)
}

const (
	chatPath  = "/v1/chat/completions"
	chatHead  = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"bash"}},{"type":"function","function":{"name":"look"}}],"messages":[{"role":"system","content":"s"},{"role":"user","content":"Check the shop"}`
	chatFirst = chatHead + `]}`
	chatAfter = chatHead + `,{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","tool_call_id":"x","content":"ok"}]}`
)

// assembled is what a client makes of the chunks of a stream.
type assembled struct {
	text, tool, id, args, finish string
	usage                        any
}

func assemble(t *testing.T, chunks []map[string]any) (a assembled) {
	t.Helper()
	for _, chunk := range chunks {
		if chunk["object"] != "chat.completion.chunk" {
			t.Fatalf("%v is no chunk", chunk)
		}
		if chunk["usage"] != nil {
			a.usage = chunk["usage"]
		}
		for _, choice := range chunk["choices"].([]any) {
			delta := choice.(map[string]any)["delta"].(map[string]any)
			if text, ok := delta["content"].(string); ok {
				a.text += text
			}
			if reason, ok := choice.(map[string]any)["finish_reason"].(string); ok {
				a.finish = reason
			}
			calls, _ := delta["tool_calls"].([]any)
			for _, c := range calls {
				call := c.(map[string]any)
				if call["index"] != float64(0) {
					t.Errorf("call %v has no index", call)
				}
				if id, ok := call["id"].(string); ok {
					a.id = id
				}
				function := call["function"].(map[string]any)
				if name, ok := function["name"].(string); ok {
					a.tool = name
				}
				a.args += function["arguments"].(string)
			}
		}
	}
	return a
}

func TestChatCompletions(t *testing.T) {
	t.Run("tool and answer", func(t *testing.T) {
		s := OpenAI(t, Tool, Script{Command: "make chéck"})
		_, chunks := post(t, s.URL+chatPath, chatFirst)
		if a := assemble(t, chunks); a.tool != "bash" || !strings.Contains(a.args, `"command":"make chéck"`) || a.id == "" || a.finish != "tool_calls" || a.usage == nil {
			t.Errorf("first answer %+v", a)
		}
		_, chunks = post(t, s.URL+chatPath, chatAfter)
		if a := assemble(t, chunks); a.tool != "" || a.text != "Done: the shop's tests pass." || a.finish != "stop" {
			t.Errorf("answer after the tool's result %+v", a)
		}
		if s.Turns() != 2 {
			t.Errorf("%d turns, want 2", s.Turns())
		}
	})
	t.Run("the other shell", func(t *testing.T) {
		_, chunks := post(t, OpenAI(t, Background, Script{}).URL+chatPath, strings.Replace(chatFirst, `"name":"bash"`, `"name":"shell"`, 1))
		if a := assemble(t, chunks); a.tool != "shell" || a.args != `{"background":true,"command":"sleep 1"}` {
			t.Errorf("called %+v", a)
		}
	})
	t.Run("end of the stream", func(t *testing.T) {
		s := OpenAI(t, Answer, Script{})
		_, header, text := answer(t, s.URL+chatPath, strings.Replace(chatFirst, `"include_usage":true`, `"include_usage":false`, 1))
		if !strings.HasSuffix(text, "data: [DONE]\n\n") || strings.Contains(text, "event:") || strings.Contains(text, "usage") || header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("stream of type %q:\n%s", header.Get("Content-Type"), text)
		}
	})
	t.Run("without stream", func(t *testing.T) {
		s := OpenAI(t, Use, Script{Tool: "look", Input: map[string]any{"value": "x"}})
		_, _, text := answer(t, s.URL+chatPath, strings.Replace(chatFirst, `"stream":true`, `"stream":false`, 1))
		for _, want := range []string{`"object":"chat.completion"`, `"finish_reason":"tool_calls"`, `"name":"look"`, `"arguments":"{\"value\":\"x\"}"`, `"total_tokens":1220`} {
			if !strings.Contains(text, want) {
				t.Errorf("answer lacks %s:\n%s", want, text)
			}
		}
	})
	t.Run("question", func(t *testing.T) {
		_, chunks := post(t, OpenAI(t, Question, Script{}).URL+chatPath, chatFirst)
		if a := assemble(t, chunks); a.tool != "question" || !strings.Contains(a.args, "Which database") {
			t.Errorf("%+v asks nothing", a)
		}
	})
	t.Run("side call", func(t *testing.T) { // OpenCode wants a title while the agent's own request hangs
		s := OpenAI(t, Hang, Script{})
		_, chunks := post(t, s.URL+chatPath, `{"stream":true,"messages":[{"role":"user","content":"Check the shop"}]}`)
		if a := assemble(t, chunks); a.finish != "stop" || s.Turns() != 0 {
			t.Errorf("side call: %+v, %d turns", a, s.Turns())
		}
	})
	t.Run("cut", func(t *testing.T) {
		resp, err := http.Post(OpenAI(t, Cut, Script{}).URL+chatPath, "application/json", strings.NewReader(chatFirst))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err == nil || !strings.Contains(string(text), "Done") || strings.Contains(string(text), "[DONE]") {
			t.Errorf("read %s: %v", text, err)
		}
	})
	t.Run("told", func(t *testing.T) {
		s := OpenAI(t, Told, Script{})
		got := ordered(t, s, Call{Server: "shop", Tool: "look", Args: map[string]any{"value": "x"}})
		_, chunks := post(t, s.URL+chatPath, chatFirst)
		a := assemble(t, chunks)
		if a.tool != "shop_look" || a.args != `{"value":"x"}` {
			t.Fatalf("called %+v", a)
		}
		said := make(chan error, 1)
		go func() { said <- s.Say(t.Context(), "Bye") }()
		_, chunks = post(t, s.URL+chatPath, chatHead+`,{"role":"tool","tool_call_id":"`+a.id+`","content":"look x 1"}]}`)
		if r := <-got; r.Text != "look x 1" {
			t.Errorf("result %+v", r)
		}
		if err := <-said; err != nil || assemble(t, chunks).text != "Bye" {
			t.Errorf("the turn's end: %v, %v", err, chunks)
		}
	})
	for _, named := range []struct{ client, offers, want string }{
		{"OpenCode", "shop_look", "shop_look"},
		{"Copilot CLI", "shop-look", "shop-look"},
		{"Qwen Code", "mcp__shop__look", "mcp__shop__look"},
		{"Qwen Code, deferred", "tool_search", "mcp__shop__look"},
	} {
		t.Run("told, as named by "+named.client, func(t *testing.T) {
			s := OpenAI(t, Told, Script{})
			look := Call{Server: "shop", Tool: "look", Args: map[string]any{"value": "x"}}
			got := ordered(t, s, look)
			_, chunks := post(t, s.URL+chatPath, strings.Replace(chatFirst, `"name":"look"`, `"name":"`+named.offers+`"`, 1))
			a := assemble(t, chunks)
			if a.tool != named.want {
				t.Fatalf("called %s, want %s", a.tool, named.want)
			}
			again := ordered(t, s, look)
			_, chunks = post(t, s.URL+chatPath, chatHead+`,{"role":"tool","tool_call_id":"`+a.id+`","content":"Not connected"}]}`)
			<-got
			b := assemble(t, chunks)
			if b.tool != named.want {
				t.Errorf("called %s when it was offered no more, want %s", b.tool, named.want)
			}
			go func() { _ = s.Say(t.Context(), "Bye") }() // for the request that brings the result
			post(t, s.URL+chatPath, chatHead+`,{"role":"tool","tool_call_id":"`+b.id+`","content":"no such tool"}]}`)
			<-again
		})
	}
}

// The bodies are those that clients tell their troubles apart by.
func TestChatRefusals(t *testing.T) {
	for mode, want := range map[Mode]struct {
		status int
		body   []string
	}{
		RateLimit: {429, []string{`"type":"requests"`, `"code":"rate_limit_exceeded"`, "try again in 1s"}},
		Overload:  {503, []string{`"type":"server_error"`, `"code":null`, "overloaded"}},
		Auth:      {401, []string{`"type":"invalid_request_error"`, `"code":"invalid_api_key"`}},
		Credit:    {429, []string{`"type":"insufficient_quota"`, `"code":"insufficient_quota"`}},
		Context:   {400, []string{`"code":"context_length_exceeded"`, `"param":"messages"`}},
		Invalid:   {400, []string{`"type":"invalid_request_error"`, `"code":"invalid_value"`}},
	} {
		status, header, text := answer(t, OpenAI(t, mode, Script{}).URL+chatPath, chatFirst)
		if status != want.status || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: status %d of type %q, want %d", mode, status, header.Get("Content-Type"), want.status)
		}
		for _, part := range want.body {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s lacks %s", mode, text, part)
			}
		}
	}
}
