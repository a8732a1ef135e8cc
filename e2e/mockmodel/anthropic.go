package mockmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// anthropic speaks the Messages API, version 2023-06-01.
type anthropic struct{ *Server }

// messagesRequest is what the script needs of a Messages request.
type messagesRequest struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

// turn reads where the conversation stands: a tool's result is a user message of its own kind, so the results are
// counted back to the last message in which the user only spoke.
func (r messagesRequest) turn() turn {
	at := turn{side: len(r.Tools) == 0}
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role != "user" {
			continue
		}
		if len(toolResults(r.Messages[i].Content)) == 0 {
			return at
		}
		at.results++
	}
	return at
}

// toolResult is the block of a message that holds what a tool call came to.
type toolResult struct {
	Type      string          `json:"type"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

func toolResults(content json.RawMessage) []toolResult {
	var blocks []toolResult
	if json.Unmarshal(content, &blocks) != nil {
		return nil // a plain string
	}
	return slices.DeleteFunc(blocks, func(b toolResult) bool { return b.Type != "tool_result" })
}

// offers says whether the request offers a tool under this name.
func (r messagesRequest) offers(name string) bool {
	for _, t := range r.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// called says whether the model has called a tool of this name.
func (r messagesRequest) called(name string) bool {
	for _, m := range r.Messages {
		var blocks []struct {
			Type string `json:"type"`
			Name string `json:"name"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue // a plain string
		}
		for _, b := range blocks {
			if b.Type == "tool_use" && b.Name == name {
				return true
			}
		}
	}
	return false
}

func (a anthropic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, call, err := a.take(r)
	if err != nil {
		return
	}
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages":
		a.messages(w, r, body, call)
	case r.Method == http.MethodPost && r.URL.Path == "/v1/messages/count_tokens":
		writeJSON(w, http.StatusOK, map[string]any{"input_tokens": 1200})
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		writeJSON(w, http.StatusOK, map[string]any{"data": []any{}, "has_more": false})
	case r.URL.Path == "/":
		w.WriteHeader(http.StatusOK) // the CLI warms its connection up
	default:
		writeJSON(w, http.StatusNotFound, anthropicError("not_found_error", "mock model: no "+r.URL.Path))
	}
}

func anthropicError(kind, message string) map[string]any {
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}, "request_id": "req_mock"}
}

func (a anthropic) messages(w http.ResponseWriter, r *http.Request, body []byte, call int) {
	var req messagesRequest
	if err := json.Unmarshal(body, &req); err != nil {
		writeJSON(w, http.StatusBadRequest, anthropicError("invalid_request_error", err.Error()))
		return
	}
	for _, m := range req.Messages {
		for _, b := range toolResults(m.Content) {
			a.came(b.ToolUseID, Result{Text: texts(b.Content), Failed: b.IsError})
		}
	}
	mode, m, text := a.next(req.turn())
	msg := message{id: fmt.Sprintf("msg_mock%04d", call), toolID: fmt.Sprintf("toolu_mock%04d", call), model: req.Model, text: text}
	switch m {
	case await:
		o, ok := a.obey(r, body)
		if !ok {
			return
		}
		defer close(o.sent)
		a.told(&msg, req, o)
	case silence:
		a.hold(r)
		return
	case refuse:
		refuseAnthropic(w, mode, a.script.Refusal)
		return
	case run, runGuard, runBehind:
		msg.tool, msg.input = "Bash", map[string]any{"command": text, "description": "Run the shop's checks"}
		if m == runBehind {
			msg.input["run_in_background"] = true
		}
	case useTool:
		switch results := req.turn().results; {
		case req.called(a.script.Tool), results > 1, results == 1 && !req.offers(a.script.Tool):
			msg.text = a.script.Text
		case req.offers(a.script.Tool):
			msg.tool, msg.input = a.script.Tool, a.script.Input
		case req.offers(searchTool):
			msg.tool, msg.input = searchTool, map[string]any{"query": "select:" + a.script.Tool, "max_results": 5}
		default:
			msg.tool, msg.input = "Bash", map[string]any{"command": text, "description": "Run the shop's checks"}
		}
	case askUser:
		msg.tool, msg.input = "AskUserQuestion", map[string]any{"questions": []any{map[string]any{
			"question": text, "header": "Database", "multiSelect": false,
			"options": []any{
				map[string]any{"label": "SQLite", "description": "One file, no server"},
				map[string]any{"label": "PostgreSQL", "description": "A server of its own"},
			},
		}}}
	}
	if msg.tool != "" {
		msg.text = "Let me see."
	}
	switch {
	case m == halfway || m == broken:
		if req.Stream { // a whole message has no middle
			msg.begin(newStream(w))
		}
		if m == broken {
			panic(http.ErrAbortHandler)
		}
		a.hold(r)
	case req.Stream:
		msg.stream(newStream(w))
	default:
		writeJSON(w, http.StatusOK, msg.whole())
	}
}

// searchTool is with what Claude Code has the model load the definitions that it defers.
const searchTool = "ToolSearch"

// told makes the test's order the message.
func (a anthropic) told(msg *message, req messagesRequest, o order) {
	if o.call == nil {
		msg.text = o.text
		o.sent <- sent{}
		return
	}
	loads := !o.loaded && !req.offers(o.call.name()) && req.offers(searchTool)
	msg.tool, msg.input = o.call.name(), o.call.Args
	if loads {
		msg.tool, msg.input = searchTool, map[string]any{"query": "select:" + o.call.name(), "max_results": 5}
	}
	a.expect(o, msg.toolID, loads)
}

// refuseAnthropic answers with an error in the provider's words. A refusal says how long to wait, as the real one does;
// one second keeps the tests short.
func refuseAnthropic(w http.ResponseWriter, mode Mode, told Refusal) {
	switch mode {
	case Refuse:
		told.write(w)
	case RateLimit:
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusTooManyRequests, anthropicError("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."))
	case Overload:
		writeJSON(w, 529, anthropicError("overloaded_error", "Overloaded"))
	case Auth:
		writeJSON(w, http.StatusUnauthorized, anthropicError("authentication_error", "invalid x-api-key"))
	case Credit:
		writeJSON(w, http.StatusBadRequest, anthropicError("invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."))
	case Invalid:
		writeJSON(w, http.StatusBadRequest, anthropicError("invalid_request_error", "messages: text content blocks must be non-empty"))
	default:
		writeJSON(w, http.StatusBadRequest, anthropicError("invalid_request_error", "prompt is too long: 214000 tokens > 200000 maximum"))
	}
}

// message is one answer of the model: a text, and a tool call when tool is not empty.
type message struct {
	id, model, text string
	tool, toolID    string
	input           map[string]any
}

func (m message) stopReason() string {
	if m.tool != "" {
		return "tool_use"
	}
	return "end_turn"
}

func usage(output int) map[string]any {
	return map[string]any{"input_tokens": 1200, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": output}
}

func (m message) outputTokens() int { return 10 + len(strings.Fields(m.text)) }

// begin sends what comes before the first word ends: the message's head and the beginning of its text.
func (m message) begin(s *stream) {
	s.send(map[string]any{"type": "message_start", "message": map[string]any{
		"id": m.id, "type": "message", "role": "assistant", "model": m.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage(1),
	}})
	s.send(map[string]any{"type": "content_block_start", "index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	s.send(map[string]any{"type": "content_block_delta", "index": 0, "delta": map[string]any{"type": "text_delta", "text": m.text}})
}

func (m message) stream(s *stream) {
	m.begin(s)
	s.send(map[string]any{"type": "content_block_stop", "index": 0})
	if m.tool != "" {
		input, err := json.Marshal(m.input)
		if err != nil {
			panic(err) // built above, of strings
		}
		s.send(map[string]any{"type": "content_block_start", "index": 1, "content_block": map[string]any{"type": "tool_use", "id": m.toolID, "name": m.tool, "input": map[string]any{}}})
		s.send(map[string]any{"type": "content_block_delta", "index": 1, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(input)}})
		s.send(map[string]any{"type": "content_block_stop", "index": 1})
	}
	s.send(map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": m.stopReason(), "stop_sequence": nil}, "usage": usage(m.outputTokens())})
	s.send(map[string]any{"type": "message_stop"})
}

// whole is the message for a client that did not ask for a stream.
func (m message) whole() map[string]any {
	content := []any{map[string]any{"type": "text", "text": m.text}}
	if m.tool != "" {
		content = append(content, map[string]any{"type": "tool_use", "id": m.toolID, "name": m.tool, "input": m.input})
	}
	return map[string]any{
		"id": m.id, "type": "message", "role": "assistant", "model": m.model, "content": content,
		"stop_reason": m.stopReason(), "stop_sequence": nil, "usage": usage(m.outputTokens()),
	}
}
