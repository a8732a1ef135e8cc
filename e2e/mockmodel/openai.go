package mockmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// openai speaks the Responses API and, in chat.go, Chat Completions.
type openai struct{ *Server }

// responsesRequest is what the script needs of a Responses request.
type responsesRequest struct {
	Model string         `json:"model"`
	Tools []responseTool `json:"tools"`
	Input []struct {
		Type  string         `json:"type"`
		Role  string         `json:"role"`
		Tools []responseTool `json:"tools"` // of additional_tools, where newer models get theirs

		CallID string          `json:"call_id"` // of a call's output
		Output json.RawMessage `json:"output"`
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

// offered are all tools of the request: those of the model, those of newer models, and those that a search has found.
func (r responsesRequest) offered() []responseTool {
	all := slices.Clone(r.Tools)
	for _, item := range r.Input {
		all = append(all, item.Tools...)
	}
	return all
}

// offersMCP finds an MCP server's tool, which is in a namespace of its server. Of one that is not offered it returns
// what it would be called.
func (r responsesRequest) offersMCP(c Call) (namespace, name string, ok bool) {
	namespace = "mcp__" + c.Server
	for _, t := range r.offered() {
		for _, inner := range t.Tools {
			if strings.TrimSuffix(t.Name, "__") == namespace && inner.Name == c.Tool {
				return t.Name, c.Tool, true
			}
		}
	}
	return namespace, c.Tool, false
}

// searches says whether the model can search for tools that the client defers.
func (r responsesRequest) searches() bool {
	return slices.ContainsFunc(r.offered(), func(t responseTool) bool { return t.Type == "tool_search" })
}

// offers says whether the request offers a tool under this name and of this type, and in which namespace.
func (r responsesRequest) offers(kind, name string) (namespace string, ok bool) {
	for _, t := range r.offered() {
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
	case r.Method == http.MethodPost && r.URL.Path == "/v1/chat/completions":
		o.chat(w, r, body, call)
	case r.Method == http.MethodGet && r.URL.Path == "/v1/models":
		writeJSON(w, http.StatusOK, map[string]any{
			"object": "list", "data": []any{map[string]any{"id": "gpt-mock", "object": "model", "created": created, "owned_by": "openai"}}, "models": []any{},
		})
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
	for _, item := range req.Input {
		if item.CallID != "" && strings.HasSuffix(item.Type, "_output") {
			o.came(item.CallID, Result{Text: texts(item.Output)})
		}
	}
	mode, m, text := o.next(req.turn())
	out := response{id: fmt.Sprintf("resp_mock%04d", call), call: call, model: req.Model}
	switch m {
	case await:
		told, ok := o.obey(r, body)
		if !ok {
			return
		}
		defer close(told.sent)
		o.told(&out, req, told)
	case silence:
		o.hold(r)
		return
	case refuse:
		refuseOpenAI(w, mode, o.script.Refusal)
		return
	case run, runGuard, runBehind:
		out.shell(req, text, m == runGuard)
	case useTool:
		namespace, ok := req.offers("function", o.script.Tool)
		switch results := req.turn().results; {
		case results > 0:
			out.say(o.script.Text)
		case ok:
			out.function(namespace, o.script.Tool, o.script.Input)
		default:
			out.shell(req, text, false)
		}
	case askUser:
		namespace, _ := req.offers("function", "request_user_input")
		out.function(namespace, "request_user_input", map[string]any{"questions": []any{map[string]any{
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
	if m == broken {
		panic(http.ErrAbortHandler)
	}
	if m == halfway {
		o.hold(r)
		return
	}
	out.finish(s)
}

// told makes the test's order the response.
func (o openai) told(out *response, req responsesRequest, told order) {
	if told.call == nil {
		out.say(told.text)
		told.sent <- sent{}
		return
	}
	if namespace, ok := req.offers("custom", "exec"); ok {
		out.program(namespace, toldWait, fmt.Sprintf("text(await tools.%s(%s));\n", told.call.name(), encode(told.call.Args)))
		o.expect(told, out.callID(), false)
		return
	}
	namespace, tool, found := req.offersMCP(*told.call)
	if loads := !told.loaded && !found && req.searches(); loads {
		out.search(told.call.Server + " " + told.call.Tool)
		o.expect(told, out.callID(), true)
		return
	}
	out.function(namespace, tool, told.call.Args)
	o.expect(told, out.callID(), false)
}

// refuseOpenAI answers with an error in the provider's words.
func refuseOpenAI(w http.ResponseWriter, mode Mode, told Refusal) {
	switch mode {
	case Refuse:
		told.write(w)
	case RateLimit:
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusTooManyRequests, openaiError("rate_limit_exceeded", "Rate limit reached for requests. Please try again in 1s."))
	case Overload:
		writeJSON(w, http.StatusServiceUnavailable, openaiError("server_error", "The server is currently overloaded."))
	case Auth:
		writeJSON(w, http.StatusUnauthorized, openaiError("invalid_api_key", "Incorrect API key provided."))
	case Credit:
		writeJSON(w, http.StatusTooManyRequests, openaiError("insufficient_quota", "You exceeded your current quota, please check your plan and billing details."))
	case Invalid:
		writeJSON(w, http.StatusBadRequest, openaiError("invalid_request_error", "Invalid value: 'shop'. Supported values are: 'auto' and 'none'."))
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

// search asks the client for tools that it defers.
func (r *response) search(query string) {
	r.item = map[string]any{
		"type": "tool_search_call", "id": fmt.Sprintf("tsc_mock%04d", r.call), "call_id": r.callID(), "execution": "client",
		"arguments": map[string]any{"query": query}, "status": "completed",
	}
}

// function calls a function; namespace is "" for one that is in none.
func (r *response) function(namespace, name string, args map[string]any) {
	r.item = map[string]any{
		"type": "function_call", "id": fmt.Sprintf("fc_mock%04d", r.call), "call_id": r.callID(),
		"name": name, "arguments": encode(args), "status": "completed",
	}
	if namespace != "" {
		r.item["namespace"] = namespace
	}
}

// shell calls whichever shell tool this model is offered: a function of one of two names, or, for the newest models, a
// program in JavaScript that calls it. escalate asks to run outside the sandbox, which is what needs a human.
func (r *response) shell(req responsesRequest, command string, escalate bool) {
	args := map[string]any{}
	if escalate {
		args["sandbox_permissions"], args["justification"] = "require_escalated", "The shop needs this file."
	}
	if namespace, ok := req.offers("custom", "exec"); ok {
		args["cmd"], args["yield_time_ms"] = command, wait
		r.program(namespace, wait, fmt.Sprintf("const r = await tools.exec_command(%s);\ntext(r.output);\n", encode(args)))
		return
	}
	if namespace, ok := req.offers("function", "shell_command"); ok {
		args["command"] = command
		r.function(namespace, "shell_command", args)
		return
	}
	args["cmd"], args["yield_time_ms"] = command, wait
	namespace, _ := req.offers("function", "exec_command")
	r.function(namespace, "exec_command", args)
}

// How long the CLI waits for a program or a command before that goes on in the background, in ms. A tool that the test
// calls is waited for until the client itself gives it up.
const (
	wait     = 120_000
	toldWait = 900_000
)

// program calls the one tool of the newest models, which runs JavaScript.
func (r *response) program(namespace string, wait int, source string) {
	r.item = map[string]any{
		"type": "custom_tool_call", "id": fmt.Sprintf("ctc_mock%04d", r.call), "call_id": r.callID(),
		"name": "exec", "status": "completed", "input": fmt.Sprintf("// @exec: {\"yield_time_ms\": %d}\n%s", wait, source),
	}
	if namespace != "" {
		r.item["namespace"] = namespace
	}
}

func (r *response) callID() string { return fmt.Sprintf("call_mock%04d", r.call) }

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
