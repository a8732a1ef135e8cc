package mockmodel

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// gemini speaks the Gemini API, version v1beta.
type gemini struct{ *Server }

// geminiRequest is what the script needs of a generateContent request.
type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		FunctionDeclarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		FunctionResponse *functionResponse `json:"functionResponse"`
	} `json:"parts"`
}

// functionResponse is the part that holds what a function call came to.
type functionResponse struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

// callID is the id of the call. Gemini CLI puts the function's name before it.
func (f functionResponse) callID() string { return strings.TrimPrefix(f.ID, f.Name+"__") }

// result reads the response, of which the API knows two members.
func (f functionResponse) result() Result {
	var response struct {
		Output *string `json:"output"`
		Error  *string `json:"error"`
	}
	switch err := json.Unmarshal(f.Response, &response); {
	case err == nil && response.Error != nil:
		return Result{Text: *response.Error, Failed: true}
	case err == nil && response.Output != nil:
		return Result{Text: *response.Output}
	}
	return Result{Text: string(f.Response)}
}

func (c geminiContent) responses() (all []functionResponse) {
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			all = append(all, *p.FunctionResponse)
		}
	}
	return all
}

// turn reads where the conversation stands: responses to function calls are of the user's role, so they are counted back
// to the last content in which the user only spoke.
func (r geminiRequest) turn() turn {
	at := turn{side: len(r.offered()) == 0}
	for _, c := range slices.Backward(r.Contents) {
		if c.Role == "model" {
			continue
		}
		responses := len(c.responses())
		if responses == 0 {
			return at
		}
		at.results += responses
	}
	return at
}

// offered are the names of the request's functions. Google's own search is a tool, but no function.
func (r geminiRequest) offered() (names []string) {
	for _, t := range r.Tools {
		for _, f := range t.FunctionDeclarations {
			names = append(names, f.Name)
		}
	}
	return names
}

// geminiPath takes a path apart. Clients with a base URL of their own may leave the version out.
func geminiPath(path string) (model, method string) {
	rest := strings.TrimPrefix(path, "/")
	if version, after, _ := strings.Cut(rest, "/"); slices.Contains([]string{"v1", "v1alpha", "v1beta"}, version) {
		rest = after
	}
	if rest == "models" {
		return "", "list"
	}
	rest, ok := strings.CutPrefix(rest, "models/")
	if !ok {
		return "", ""
	}
	model, method, _ = strings.Cut(rest, ":")
	return model, method
}

func (g gemini) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, call, err := g.take(r)
	if err != nil {
		return
	}
	switch model, method := geminiPath(r.URL.Path); {
	case r.Method == http.MethodPost && method == "generateContent":
		g.generate(w, r, body, candidate{id: fmt.Sprintf("mock%04d", call), model: model}, false)
	case r.Method == http.MethodPost && method == "streamGenerateContent" && r.URL.Query().Get("alt") == "sse":
		g.generate(w, r, body, candidate{id: fmt.Sprintf("mock%04d", call), model: model}, true)
	case r.Method == http.MethodPost && method == "countTokens":
		writeJSON(w, http.StatusOK, map[string]any{"totalTokens": 1200, "promptTokensDetails": modality(1200)})
	case r.Method == http.MethodGet && method == "list":
		writeJSON(w, http.StatusOK, map[string]any{"models": []any{map[string]any{
			"name": "models/gemini-mock", "version": "mock", "displayName": "Gemini Mock", "inputTokenLimit": 1048576, "outputTokenLimit": 65536,
			"supportedGenerationMethods": []string{"generateContent", "countTokens"},
		}}})
	default:
		googleError(http.StatusNotFound, "NOT_FOUND", "mock model: no "+r.URL.RequestURI()).write(w)
	}
}

func (g gemini) generate(w http.ResponseWriter, r *http.Request, body []byte, out candidate, streamed bool) {
	var req geminiRequest
	if err := json.Unmarshal(body, &req); err != nil {
		googleError(http.StatusBadRequest, "INVALID_ARGUMENT", err.Error()).write(w)
		return
	}
	for _, c := range req.Contents {
		for _, f := range c.responses() {
			g.came(f.callID(), f.result())
		}
	}
	at := req.turn()
	mode, m, text := g.next(at)
	out.text = text
	switch m {
	case await:
		told, ok := g.obey(r, body)
		if !ok {
			return
		}
		defer close(told.sent)
		g.told(&out, told)
	case silence:
		g.hold(r)
		return
	case refuse:
		g.refuse(w, mode, streamed)
		return
	case run, runGuard, runBehind:
		out.shell(text, m == runBehind)
	case useTool:
		switch {
		case at.results > 0:
			out.text = g.script.Text
		case slices.Contains(req.offered(), g.script.Tool):
			out.calls(g.script.Tool, g.script.Input)
		default:
			out.shell(text, false)
		}
	case askUser:
		out.asks(text)
	}
	if at.results > 0 && out.function != "" {
		out.text = "" // only the first call has a text with it: the CLI records the two forms differently
	}
	g.send(w, r, &out, m, streamed)
}

// send sends an answer, or the beginning of one.
func (g gemini) send(w http.ResponseWriter, r *http.Request, out *candidate, m move, streamed bool) {
	switch {
	case m == halfway || m == broken:
		if streamed { // a whole answer has no middle
			newStream(w).data(out.part(map[string]any{"text": out.text}, false))
		}
		if m == broken {
			panic(http.ErrAbortHandler)
		}
		g.hold(r)
	case streamed:
		out.stream(newStream(w))
	default:
		writeJSON(w, http.StatusOK, out.whole())
	}
}

// told makes the test's order the answer. Gemini CLI defers no tools.
func (g gemini) told(out *candidate, told order) {
	if told.call == nil {
		out.text = told.text
		told.sent <- sent{}
		return
	}
	out.calls("mcp_"+told.call.Server+"_"+told.call.Tool, told.call.Args)
	g.expect(told, out.id, false)
}

// refuse answers with an error in the provider's words. Where a stream was asked for, the API gives the error the type
// of a stream, though it is one object; clients then take it for a text.
func (g gemini) refuse(w http.ResponseWriter, mode Mode, streamed bool) {
	refusal := g.script.Refusal
	if mode != Refuse {
		refusal = geminiRefusal(mode)
	}
	if streamed {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	refusal.write(w)
}

// googleError is an error as all APIs of Google send it, with details of google.rpc's types.
func googleError(code int, status, message string, details ...any) Refusal {
	e := map[string]any{"code": code, "message": message, "status": status}
	if len(details) > 0 {
		e["details"] = details
	}
	return Refusal{Status: code, Body: map[string]any{"error": e}}
}

// rpcDetail is a detail of an error, of one of google.rpc's types.
func rpcDetail(kind string, members map[string]any) map[string]any {
	members["@type"] = "type.googleapis.com/google.rpc." + kind
	return members
}

// GeminiQuota is the refusal of the Gemini API when a quota of the free tier is used up, for Script.Refusal. per is
// "Minute" or "Day"; retry is a duration in seconds as the API writes it, e.g. "1s" or "43.9s".
func GeminiQuota(per, model string, limit int, retry string) Refusal {
	const metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
	message := fmt.Sprintf("You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: "+
		"https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to: https://ai.dev/rate-limit. \n"+
		"* Quota exceeded for metric: %s, limit: %d, model: %s\nPlease retry in %s.", metric, limit, model, retry)
	return googleError(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", message,
		rpcDetail("Help", map[string]any{"links": []any{map[string]any{
			"description": "Learn more about Gemini API quotas", "url": "https://ai.google.dev/gemini-api/docs/rate-limits",
		}}}),
		rpcDetail("QuotaFailure", map[string]any{"violations": []any{map[string]any{
			"quotaMetric": metric, "quotaId": "GenerateRequestsPer" + per + "PerProjectPerModel-FreeTier",
			"quotaDimensions": map[string]any{"location": "global", "model": model}, "quotaValue": fmt.Sprint(limit),
		}}}),
		rpcDetail("RetryInfo", map[string]any{"retryDelay": retry}))
}

// geminiRefusal is the provider's error for a mode.
func geminiRefusal(mode Mode) Refusal {
	switch mode {
	case RateLimit:
		return GeminiQuota("Minute", "gemini-mock", 10, "1s")
	case Overload:
		return googleError(http.StatusServiceUnavailable, "UNAVAILABLE", "The model is overloaded. Please try again later.")
	case Auth:
		return googleError(http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
			rpcDetail("ErrorInfo", map[string]any{"reason": "API_KEY_INVALID", "domain": "googleapis.com",
				"metadata": map[string]any{"service": "generativelanguage.googleapis.com"}}),
			rpcDetail("LocalizedMessage", map[string]any{"locale": "en-US", "message": "API key not valid. Please pass a valid API key."}))
	case Credit:
		return googleError(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED",
			"Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your project and billing.")
	case Invalid:
		return googleError(http.StatusBadRequest, "INVALID_ARGUMENT",
			"Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	}
	return googleError(http.StatusBadRequest, "INVALID_ARGUMENT", "The input token count (1214000) exceeds the maximum number of tokens allowed (1048576).")
}

// candidate is one answer of the model: a text, and a function call when function is not empty.
type candidate struct {
	id, model, text string
	function        string
	args            map[string]any
}

func (c *candidate) calls(function string, args map[string]any) {
	c.text, c.function, c.args = "Let me see.", function, args
}

// shell calls Gemini CLI's shell tool. Its approval mode and its policy say what needs approval.
func (c *candidate) shell(command string, behind bool) {
	c.calls("run_shell_command", map[string]any{"command": command, "description": "Run the shop's checks", "is_background": behind})
}

func (c *candidate) asks(question string) {
	c.calls("ask_user", map[string]any{"questions": []any{map[string]any{
		"question": question, "header": "Database", "type": "choice", "multiSelect": false,
		"options": []any{
			map[string]any{"label": "SQLite", "description": "One file, no server"},
			map[string]any{"label": "PostgreSQL", "description": "A server of its own"},
		},
	}}})
}

// response is an answer, or a chunk of one, with these parts. The last one has the reason why the model has stopped,
// which is STOP for a function call as well.
func (c *candidate) response(parts []any, last bool) map[string]any {
	of := map[string]any{"content": map[string]any{"parts": parts, "role": "model"}, "index": 0}
	if last {
		of["finishReason"] = "STOP"
	}
	return map[string]any{
		"candidates": []any{of}, "modelVersion": c.model, "responseId": c.id,
		"usageMetadata": map[string]any{"promptTokenCount": 1200, "candidatesTokenCount": 20, "totalTokenCount": 1220, "promptTokensDetails": modality(1200)},
	}
}

func (c *candidate) part(part map[string]any, last bool) map[string]any {
	return c.response([]any{part}, last)
}

func modality(tokens int) []any {
	return []any{map[string]any{"modality": "TEXT", "tokenCount": tokens}}
}

func (c *candidate) call() map[string]any {
	return map[string]any{"functionCall": map[string]any{"id": c.id, "name": c.function, "args": c.args}}
}

// stream sends the text, if there is one, and as its last chunk the function call or an empty text.
func (c *candidate) stream(s *stream) {
	if c.text != "" {
		s.data(c.part(map[string]any{"text": c.text}, false))
	}
	if c.function != "" {
		s.data(c.part(c.call(), true))
		return
	}
	s.data(c.part(map[string]any{"text": ""}, true))
}

// whole is the answer for a client that did not ask for a stream.
func (c *candidate) whole() map[string]any {
	var parts []any
	if c.text != "" {
		parts = append(parts, map[string]any{"text": c.text})
	}
	if c.function != "" {
		parts = append(parts, c.call())
	}
	return c.response(parts, true)
}
