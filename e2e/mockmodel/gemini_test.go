package mockmodel

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

const (
	geminiStream = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
	geminiHead   = `{"tools":[{"functionDeclarations":[{"name":"run_shell_command"},{"name":"look"}]}],"contents":[{"role":"user","parts":[{"text":"Check the shop"}]}`
	geminiFirst  = geminiHead + `]}`
	geminiAfter  = geminiHead + `,{"role":"model","parts":[{"functionCall":{"name":"run_shell_command","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"run_shell_command","response":{"output":"ok"}}}]}]}`
)

// spoken is what a client makes of the chunks of a stream.
type spoken struct {
	text, function, id, args, finish string
}

func listen(t *testing.T, chunks []map[string]any) (s spoken) {
	t.Helper()
	for _, chunk := range chunks {
		if chunk["usageMetadata"] == nil {
			t.Errorf("chunk %v tells no usage", chunk)
		}
		one := chunk["candidates"].([]any)[0].(map[string]any)
		if reason, ok := one["finishReason"].(string); ok {
			s.finish = reason
		}
		content := one["content"].(map[string]any)
		if content["role"] != "model" {
			t.Errorf("content %v is not the model's", content)
		}
		for _, p := range content["parts"].([]any) {
			part := p.(map[string]any)
			if text, ok := part["text"].(string); ok {
				s.text += text
			}
			if call, ok := part["functionCall"].(map[string]any); ok {
				args, _ := json.Marshal(call["args"])
				s.function, s.id, s.args = call["name"].(string), call["id"].(string), string(args)
			}
		}
	}
	return s
}

func TestGemini(t *testing.T) {
	t.Run("tool and answer", func(t *testing.T) {
		s := Gemini(t, Tool, Script{Command: "make check"})
		_, chunks := post(t, s.URL+geminiStream, geminiFirst)
		if said := listen(t, chunks); said.function != "run_shell_command" || !strings.Contains(said.args, `"command":"make check"`) || said.finish != "STOP" {
			t.Errorf("first answer %+v", said)
		}
		_, chunks = post(t, s.URL+geminiStream, geminiAfter)
		if said := listen(t, chunks); said.function != "" || said.text != "Done: the shop's tests pass." || said.finish != "STOP" {
			t.Errorf("answer after the function's response %+v", said)
		}
		if s.Turns() != 2 {
			t.Errorf("%d turns, want 2", s.Turns())
		}
	})
	t.Run("a further call", func(t *testing.T) {
		_, chunks := post(t, Gemini(t, Loop, Script{}).URL+geminiStream, geminiAfter)
		if said := listen(t, chunks); said.function != "run_shell_command" || said.text != "" || said.finish != "STOP" {
			t.Errorf("%+v is no call without a text", said)
		}
	})
	t.Run("without stream", func(t *testing.T) {
		for _, path := range []string{"/v1beta/models/m:generateContent", "/v1/models/m:generateContent", "/models/m:generateContent"} {
			_, header, text := answer(t, Gemini(t, Background, Script{}).URL+path, geminiFirst)
			for _, want := range []string{`"is_background":true`, `"finishReason":"STOP"`, `"modelVersion":"m"`, `"totalTokenCount":1220`} {
				if !strings.Contains(text, want) || header.Get("Content-Type") != "application/json" {
					t.Errorf("%s: answer of type %q lacks %s:\n%s", path, header.Get("Content-Type"), want, text)
				}
			}
		}
	})
	t.Run("other methods", func(t *testing.T) {
		s := Gemini(t, Hang, Script{})
		if _, _, text := answer(t, s.URL+"/v1beta/models/m:countTokens", geminiFirst); !strings.Contains(text, `"totalTokens":1200`) {
			t.Errorf("count: %s", text)
		}
		if status, _, text := answer(t, s.URL+"/v1beta/models/m:shop", geminiFirst); status != http.StatusNotFound || !strings.Contains(text, `"status":"NOT_FOUND"`) {
			t.Errorf("unknown method: %d %s", status, text)
		}
		if s.Turns() != 0 {
			t.Errorf("they count as %d turns", s.Turns())
		}
	})
	t.Run("question", func(t *testing.T) {
		_, chunks := post(t, Gemini(t, Question, Script{}).URL+geminiStream, geminiFirst)
		if said := listen(t, chunks); said.function != "ask_user" || !strings.Contains(said.args, `"type":"choice"`) {
			t.Errorf("%+v asks nothing", said)
		}
	})
	t.Run("side call", func(t *testing.T) { // a search is a tool, but no function
		s := Gemini(t, Hang, Script{})
		_, chunks := post(t, s.URL+geminiStream, `{"tools":[{"googleSearch":{}}],"contents":[{"role":"user","parts":[{"text":"x"}]}]}`)
		if said := listen(t, chunks); said.finish != "STOP" || s.Turns() != 0 {
			t.Errorf("side call: %+v, %d turns", said, s.Turns())
		}
	})
	t.Run("cut", func(t *testing.T) {
		resp, err := http.Post(Gemini(t, Cut, Script{}).URL+geminiStream, "application/json", strings.NewReader(geminiFirst))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err == nil || !strings.Contains(string(text), "Done") || strings.Contains(string(text), "STOP") {
			t.Errorf("read %s: %v", text, err)
		}
	})
	t.Run("told", func(t *testing.T) { // Gemini CLI puts the function's name before the id
		for _, prefix := range []string{"", "mcp_shop_look__"} {
			s := Gemini(t, Told, Script{})
			got := ordered(t, s, Call{Server: "shop", Tool: "look", Args: map[string]any{"value": "x"}})
			_, chunks := post(t, s.URL+geminiStream, geminiFirst)
			said := listen(t, chunks)
			if said.function != "mcp_shop_look" || said.args != `{"value":"x"}` {
				t.Fatalf("called %+v", said)
			}
			go func() { _ = s.Say(t.Context(), "Bye") }() // for the request that brings the response
			post(t, s.URL+geminiStream, geminiHead+`,{"role":"user","parts":[{"functionResponse":{"id":"`+prefix+said.id+`","name":"mcp_shop_look","response":{"error":"Connection closed"}}}]}]}`)
			if r := <-got; r.Text != "Connection closed" || !r.Failed {
				t.Errorf("result %+v", r)
			}
		}
	})
}

// The error of a stream is of a stream's type, and clients wrap its text; that of a plain request they read.
func TestGeminiRefusals(t *testing.T) {
	day := GeminiQuota("Day", "gemini-2.5-pro", 50, "43.9s")
	for mode, want := range map[Mode]struct {
		status int
		body   []string
	}{
		RateLimit: {429, []string{`"status":"RESOURCE_EXHAUSTED"`, `"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"`, `"@type":"type.googleapis.com/google.rpc.RetryInfo"`, `"retryDelay":"1s"`, "Please retry in 1s."}},
		Refuse:    {429, []string{`"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"`, `"quotaValue":"50"`, "limit: 50, model: gemini-2.5-pro", `"retryDelay":"43.9s"`}},
		Overload:  {503, []string{`"code":503`, `"status":"UNAVAILABLE"`, "overloaded"}},
		Auth:      {400, []string{`"status":"INVALID_ARGUMENT"`, `"reason":"API_KEY_INVALID"`}},
		Credit:    {429, []string{`"status":"RESOURCE_EXHAUSTED"`, "credits are depleted"}},
		Context:   {400, []string{`"status":"INVALID_ARGUMENT"`, "exceeds the maximum number of tokens allowed (1048576)"}},
		Invalid:   {400, []string{`"status":"INVALID_ARGUMENT"`, "function call turn"}},
	} {
		s := Gemini(t, mode, Script{Refusal: day})
		for path, kind := range map[string]string{geminiStream: "text/event-stream", "/v1beta/models/m:generateContent": "application/json"} {
			status, header, text := answer(t, s.URL+path, geminiFirst)
			if status != want.status || header.Get("Content-Type") != kind {
				t.Errorf("%s %s: status %d of type %q, want %d", mode, path, status, header.Get("Content-Type"), want.status)
			}
			for _, part := range want.body {
				if !strings.Contains(text, part) {
					t.Errorf("%s: %s lacks %s", mode, text, part)
				}
			}
		}
	}
}
