package mockmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// openai speaks the Responses API.
type openai struct{ *Server }

// responsesRequest is what the script needs of a Responses request.
type responsesRequest struct {
	Model string         `json:"model"`
	Tools []responseTool `json:"tools"`
	Input []struct {
		Type  string         `json:"type"`
		Role  string         `json:"role"`
		Tools []responseTool `json:"tools"` // of additional_tools, where newer models get theirs
	} `json:"input"`
	Text struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
}

// responseTool is a tool, or a namespace of tools.
type responseTool struct {
	Type  string         `json:"type"`
	Name  string         `json:"name"`
	Tools []responseTool `json:"tools"`
}

// turn reads where the conversation stands. Codex' side calls (a title for the thread) offer tools as well, but ask for
// an answer in a schema, which the agent's own turns do not.
func (r responsesRequest) turn() turn {
	at := turn{side: len(r.Text.Format) > 0 || !r.anyTools()}
	for _, item := range slices.Backward(r.Input) {
		switch {
		case item.Type == "function_call_output" || item.Type == "custom_tool_call_output":
			at.results++
		case item.Role == "user":
			return at
		}
	}
	return at
}

func (r responsesRequest) anyTools() bool {
	for _, item := range r.Input {
		if len(item.Tools) > 0 {
			return true
		}
	}
	return len(r.Tools) > 0
}

// offers says whether the request offers a tool under this name and of this type, and in which namespace.
func (r responsesRequest) offers(kind, name string) (namespace string, ok bool) {
	all := slices.Clone(r.Tools)
	for _, item := range r.Input {
		all = append(all, item.Tools...)
	}
	for _, t := range all {
		if t.Type == kind && t.Name == name {
			return "", true
		}
		for _, inner := range t.Tools {
			if inner.Type == kind && inner.Name == name {
				return t.Name, true
			}
		}
	}
	return "", false
}

func (o openai) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, call, err := o.take(r)
	if err != nil {
		return
	}
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/responses":
		o.responses(w, r, body, call)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{}, "models": []any{}})
	default:
		writeJSON(w, http.StatusNotFound, openaiError("not_found", "mock model: no "+r.URL.Path))
	}
}

func openaiError(code, message string) map[string]any {
	return map[string]any{"error": map[string]any{"type": code, "code": code, "message": message, "param": nil}}
}

func (o openai) responses(w http.ResponseWriter, r *http.Request, body []byte, call int) {
	var req responsesRequest
	if err := json.Unmarshal(body, &req); err != nil {
		writeJSON(w, http.StatusBadRequest, openaiError("invalid_request_error", err.Error()))
		return
	}
	mode, m, text := o.next(req.turn())
	out := response{id: fmt.Sprintf("resp_mock%04d", call), call: call, model: req.Model}
	switch m {
	case silence:
		o.hold(r)
		return
	case refuse:
		refuseOpenAI(w, mode)
		return
	case run, runGuard:
		out.shell(req, text, m == runGuard)
	case askUser:
		out.function(req, "request_user_input", map[string]any{"questions": []any{map[string]any{
			"id": "database", "header": "Database", "question": text,
			"options": []any{
				map[string]any{"label": "SQLite", "description": "One file, no server"},
				map[string]any{"label": "PostgreSQL", "description": "A server of its own"},
			},
		}}})
	default:
		out.say(text)
	}
	s := newStream(w)
	out.begin(s)
	if m == halfway {
		o.hold(r)
		return
	}
	out.finish(s)
}

// refuseOpenAI answers with an error in the provider's words.
func refuseOpenAI(w http.ResponseWriter, mode Mode) {
	switch mode {
	case RateLimit:
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusTooManyRequests, openaiError("rate_limit_exceeded", "Rate limit reached for requests. Please try again in 1s."))
	case Overload:
		writeJSON(w, http.StatusServiceUnavailable, openaiError("server_error", "The server is currently overloaded."))
	case Auth:
		writeJSON(w, http.StatusUnauthorized, openaiError("invalid_api_key", "Incorrect API key provided."))
	default:
		writeJSON(w, http.StatusBadRequest, openaiError("context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again."))
	}
}

// response is one answer of the model: one item, a message or a function call.
type response struct {
	id    string
	call  int
	model string
	item  map[string]any
}

func (r *response) say(text string) {
	r.item = map[string]any{
		"type": "message", "role": "assistant", "id": fmt.Sprintf("msg_mock%04d", r.call), "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": text, "annotations": []any{}}},
	}
}

func (r *response) function(req responsesRequest, name string, args map[string]any) {
	r.item = map[string]any{
		"type": "function_call", "id": fmt.Sprintf("fc_mock%04d", r.call), "call_id": fmt.Sprintf("call_mock%04d", r.call),
		"name": name, "arguments": encode(args), "status": "completed",
	}
	if namespace, _ := req.offers("function", name); namespace != "" {
		r.item["namespace"] = namespace
	}
}

// shell calls whichever shell tool this model is offered: a function of one of two names, or, for the newest models, a
// program in JavaScript that calls it. escalate asks to run outside the sandbox, which is what needs a human.
func (r *response) shell(req responsesRequest, command string, escalate bool) {
	const wait = 120_000 // ms. Without it a command that runs for long goes on in the background.
	args := map[string]any{}
	if escalate {
		args["sandbox_permissions"], args["justification"] = "require_escalated", "The shop needs this file."
	}
	if namespace, ok := req.offers("custom", "exec"); ok {
		args["cmd"], args["yield_time_ms"] = command, wait
		r.item = map[string]any{
			"type": "custom_tool_call", "id": fmt.Sprintf("ctc_mock%04d", r.call), "call_id": fmt.Sprintf("call_mock%04d", r.call),
			"name": "exec", "status": "completed",
			"input": fmt.Sprintf("// @exec: {\"yield_time_ms\": %d}\nconst r = await tools.exec_command(%s);\ntext(r.output);\n", wait, encode(args)),
		}
		if namespace != "" {
			r.item["namespace"] = namespace
		}
		return
	}
	if _, ok := req.offers("function", "shell_command"); ok {
		args["command"] = command
		r.function(req, "shell_command", args)
		return
	}
	args["cmd"], args["yield_time_ms"] = command, wait
	r.function(req, "exec_command", args)
}

func encode(v map[string]any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // built here, of strings and numbers
	}
	return string(text)
}

func (r *response) head(status string) map[string]any {
	return map[string]any{"id": r.id, "object": "response", "status": status, "model": r.model, "output": []any{}}
}

func (r *response) begin(s *stream) {
	s.send(map[string]any{"type": "response.created", "response": r.head("in_progress")})
	s.send(map[string]any{"type": "response.output_item.added", "output_index": 0, "item": r.item})
}

func (r *response) finish(s *stream) {
	s.send(map[string]any{"type": "response.output_item.done", "output_index": 0, "item": r.item})
	done := r.head("completed")
	done["output"] = []any{r.item}
	done["usage"] = map[string]any{
		"input_tokens": 1200, "input_tokens_details": map[string]any{"cached_tokens": 0},
		"output_tokens": 20, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": 1220,
	}
	s.send(map[string]any{"type": "response.completed", "response": done})
}
