package mockmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// chatRequest is what the script needs of a Chat Completions request.
type chatRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Messages []struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"` // of a tool's result
	} `json:"messages"`
}

// turn reads where the conversation stands: each tool's result is a message of the role "tool".
func (r chatRequest) turn() turn {
	at := turn{side: len(r.Tools) == 0}
	for _, m := range slices.Backward(r.Messages) {
		switch m.Role {
		case "tool":
			at.results++
		case "user":
			return at
		}
	}
	return at
}

// offers says whether the request offers a tool under this name.
func (r chatRequest) offers(name string) bool {
	for _, t := range r.Tools {
		if t.Function.Name == name {
			return true
		}
	}
	return false
}

// chat answers a Chat Completions request, with the shell and the question of OpenCode.
func (o openai) chat(w http.ResponseWriter, r *http.Request, body []byte, call int) {
	var req chatRequest
	if err := json.Unmarshal(body, &req); err != nil {
		writeJSON(w, http.StatusBadRequest, chatError("invalid_request_error", "", "", err.Error()))
		return
	}
	for _, m := range req.Messages {
		if m.Role == "tool" {
			o.came(m.ToolCallID, Result{Text: texts(m.Content)})
		}
	}
	at := req.turn()
	mode, m, text := o.next(at)
	out := completion{id: fmt.Sprintf("chatcmpl-mock%04d", call), toolID: fmt.Sprintf("call_mock%04d", call),
		model: req.Model, text: text, counted: req.StreamOptions.IncludeUsage}
	switch m {
	case await:
		told, ok := o.obey(r, body)
		if !ok {
			return
		}
		defer close(told.sent)
		o.toldChat(&out, req, told)
	case silence:
		o.hold(r)
		return
	case refuse:
		refuseChat(w, mode, o.script.Refusal)
		return
	case run, runGuard, runBehind:
		out.shell(req, text, m == runBehind)
	case useTool:
		switch {
		case at.results > 0:
			out.text = o.script.Text
		case req.offers(o.script.Tool):
			out.calls(o.script.Tool, o.script.Input)
		default:
			out.shell(req, text, false)
		}
	case askUser:
		out.calls("question", map[string]any{"questions": []any{map[string]any{
			"question": text, "header": "Database",
			"options": []any{
				map[string]any{"label": "SQLite", "description": "One file, no server"},
				map[string]any{"label": "PostgreSQL", "description": "A server of its own"},
			},
		}}})
	}
	o.sendChat(w, r, &out, m, req.Stream)
}

// sendChat sends an answer, or the beginning of one.
func (o openai) sendChat(w http.ResponseWriter, r *http.Request, out *completion, m move, streamed bool) {
	switch {
	case m == halfway || m == broken:
		if streamed { // a whole answer has no middle
			out.begin(newStream(w))
		}
		if m == broken {
			panic(http.ErrAbortHandler)
		}
		o.hold(r)
	case streamed:
		s := newStream(w)
		out.begin(s)
		out.finish(s)
	default:
		writeJSON(w, http.StatusOK, out.whole())
	}
}

// toldChat makes the test's order the answer.
func (o openai) toldChat(out *completion, req chatRequest, told order) {
	if told.call == nil {
		out.text = told.text
		told.sent <- sent{}
		return
	}
	out.calls(o.chatName(req, *told.call), told.call.Args)
	o.expect(told, out.toolID, false)
}

// chatNames are what clients call an MCP server's tool: OpenCode, Copilot CLI, and Qwen Code.
var chatNames = []func(Call) string{
	func(c Call) string { return c.Server + "_" + c.Tool },
	func(c Call) string { return c.Server + "-" + c.Tool },
	Call.name,
}

// chatName is the name under which the request offers a tool. One that it does not offer has a name of the kind seen last. Qwen Code
// defers the tools of MCP servers, and takes a call by the name alone.
func (o openai) chatName(req chatRequest, c Call) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range chatNames {
		if req.offers(name(c)) {
			o.named = name
			return name(c)
		}
	}
	if o.named == nil && req.offers("tool_search") {
		o.named = Call.name
	}
	if o.named == nil {
		return chatNames[0](c)
	}
	return o.named(c)
}

// chatError is the body of an error; an empty param or code is null.
func chatError(kind, param, code, message string) map[string]any {
	orNull := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "param": orNull(param), "code": orNull(code)}}
}

// refuseChat answers with an error in the words that the provider has for Chat Completions.
func refuseChat(w http.ResponseWriter, mode Mode, told Refusal) {
	switch mode {
	case Refuse:
		told.write(w)
	case RateLimit:
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusTooManyRequests, chatError("requests", "", "rate_limit_exceeded",
			"Rate limit reached for gpt-mock in organization org-mock on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 1s. Visit https://platform.openai.com/account/rate-limits to learn more."))
	case Overload:
		writeJSON(w, http.StatusServiceUnavailable, chatError("server_error", "", "", "The server is currently overloaded with other requests. Sorry about that! You can retry your request."))
	case Auth:
		writeJSON(w, http.StatusUnauthorized, chatError("invalid_request_error", "", "invalid_api_key",
			"Incorrect API key provided: mock. You can find your API key at https://platform.openai.com/account/api-keys."))
	case Credit:
		writeJSON(w, http.StatusTooManyRequests, chatError("insufficient_quota", "", "insufficient_quota",
			"You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors."))
	case Invalid:
		writeJSON(w, http.StatusBadRequest, chatError("invalid_request_error", "messages[0].role", "invalid_value",
			"Invalid value: 'shop'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."))
	default:
		writeJSON(w, http.StatusBadRequest, chatError("invalid_request_error", "messages", "context_length_exceeded",
			"This model's maximum context length is 128000 tokens. However, your messages resulted in 214000 tokens. Please reduce the length of the messages."))
	}
}

// completion is one answer of the model: a text, and a tool call when tool is not empty.
type completion struct {
	id, model, text string
	tool, toolID    string
	args            map[string]any
	counted         bool // the stream tells its usage
}

func (c *completion) calls(tool string, args map[string]any) {
	c.text, c.tool, c.args = "Let me see.", tool, args
}

// shell calls the shell tool that is offered: OpenCode 2 has "shell", which can leave a command running, and OpenCode 1
// has "bash". The client's configuration says what needs approval.
func (c *completion) shell(req chatRequest, command string, behind bool) {
	if req.offers("shell") {
		c.calls("shell", map[string]any{"command": command, "background": behind})
		return
	}
	c.calls("bash", map[string]any{"command": command, "description": "Run the shop's checks"})
}

func (c *completion) finishReason() string {
	if c.tool != "" {
		return "tool_calls"
	}
	return "stop"
}

// created is when the answers were made, for the server has no clock.
const created = 1767225600

func (c *completion) head(object string) map[string]any {
	return map[string]any{"id": c.id, "object": object, "created": created, "model": c.model, "service_tier": "default", "system_fingerprint": "fp_mock"}
}

// chunk is a part of the answer; finish is nil for all but the last.
func (c *completion) chunk(delta map[string]any, finish any) map[string]any {
	chunk := c.head("chat.completion.chunk")
	chunk["choices"] = []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
	if c.counted {
		chunk["usage"] = nil // of the last chunk only
	}
	return chunk
}

// begin sends the answer's role and its text.
func (c *completion) begin(s *stream) {
	s.data(c.chunk(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil))
	s.data(c.chunk(map[string]any{"content": c.text}, nil))
}

// finish sends the tool call, its arguments in two pieces, and the end.
func (c *completion) finish(s *stream) {
	if c.tool != "" {
		call := c.call("")
		call["index"] = 0
		s.data(c.chunk(map[string]any{"tool_calls": []any{call}}, nil))
		args := []rune(encode(c.args))
		for _, piece := range [][]rune{args[:len(args)/2], args[len(args)/2:]} {
			s.data(c.chunk(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "function": map[string]any{"arguments": string(piece)}}}}, nil))
		}
	}
	s.data(c.chunk(map[string]any{}, c.finishReason()))
	if c.counted {
		last := c.head("chat.completion.chunk")
		last["choices"], last["usage"] = []any{}, chatUsage()
		s.data(last)
	}
	s.write("data: [DONE]\n\n")
}

func (c *completion) call(args string) map[string]any {
	return map[string]any{"id": c.toolID, "type": "function", "function": map[string]any{"name": c.tool, "arguments": args}}
}

// whole is the answer for a client that did not ask for a stream.
func (c *completion) whole() map[string]any {
	message := map[string]any{"role": "assistant", "content": c.text, "refusal": nil, "annotations": []any{}}
	if c.tool != "" {
		message["tool_calls"] = []any{c.call(encode(c.args))}
	}
	whole := c.head("chat.completion")
	whole["choices"] = []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": c.finishReason()}}
	whole["usage"] = chatUsage()
	return whole
}

func chatUsage() map[string]any {
	return map[string]any{
		"prompt_tokens": 1200, "completion_tokens": 20, "total_tokens": 1220,
		"prompt_tokens_details":     map[string]any{"cached_tokens": 0, "audio_tokens": 0},
		"completion_tokens_details": map[string]any{"reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0},
	}
}
