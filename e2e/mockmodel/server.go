package mockmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// maxBody bounds a request: an agent's prompt with all its tools is about 200 KiB.
const maxBody = 16 << 20

// Request is one request the server got.
type Request struct {
	Method string
	Path   string // with the query
	Body   json.RawMessage
}

// Server is a model server on a loopback port.
type Server struct {
	// URL is the base URL without a path, e.g. http://127.0.0.1:4711.
	URL string

	http   *httptest.Server
	closed chan struct{}         // releases the requests that hang
	orders map[string]chan order // what the test says, for whichever request waits for it, by Call.Prompt

	mu       sync.Mutex
	mode     Mode
	script   Script
	requests []Request
	calls    int // numbers ids
	turns    int
	named    func(Call) string      // how the client has named a tool of an MCP server in Chat Completions; nil: none so far
	expected map[string]chan Result // by the id of a call whose result has not come yet; each takes one
}

// Anthropic starts a server that speaks the Anthropic Messages API: POST /v1/messages (streaming and not),
// /v1/messages/count_tokens, GET /v1/models. It is closed at the end of the test.
func Anthropic(t testing.TB, mode Mode, script Script) *Server {
	return start(t, mode, script, func(s *Server) http.Handler { return anthropic{s} })
}

// OpenAI starts a server that speaks the OpenAI APIs: POST /v1/responses (streaming), POST /v1/chat/completions (streaming
// and not), GET /v1/models. It is closed at the end of the test.
func OpenAI(t testing.TB, mode Mode, script Script) *Server {
	return start(t, mode, script, func(s *Server) http.Handler { return openai{s} })
}

// Gemini starts a server that speaks the Gemini API, below /v1beta/models or just /models: POST MODEL:generateContent,
// MODEL:streamGenerateContent?alt=sse and MODEL:countTokens, and GET of the list. It is closed at the end of the test.
func Gemini(t testing.TB, mode Mode, script Script) *Server {
	return start(t, mode, script, func(s *Server) http.Handler { return gemini{s} })
}

func start(t testing.TB, mode Mode, script Script, api func(*Server) http.Handler) *Server {
	t.Helper()
	if !slices.Contains(Modes(), mode) {
		t.Fatalf("mock model: no mode %q", mode)
	}
	s := &Server{mode: mode, script: script.withDefaults(), closed: make(chan struct{}), orders: map[string]chan order{"": make(chan order)}, expected: map[string]chan Result{}}
	for _, prompt := range s.script.Prompts {
		s.orders[prompt] = make(chan order)
	}
	s.http = httptest.NewServer(api(s))
	s.URL = s.http.URL
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and every request it keeps waiting. It may be called more than once.
func (s *Server) Close() {
	s.mu.Lock()
	select {
	case <-s.closed:
		s.mu.Unlock()
		return
	default:
	}
	close(s.closed)
	s.mu.Unlock()
	s.http.CloseClientConnections()
	s.http.Close()
}

// SetMode changes what the model does from the next request on: a provider that heals, or breaks. Requests that hang
// already go on hanging, as those of a real provider do.
func (s *Server) SetMode(mode Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = mode
}

// Requests are the requests so far, in the order in which they came.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Turns counts the requests with which the agent asked for its next step, without the CLI's side calls.
func (s *Server) Turns() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turns
}

// take reads and records a request and returns it with a number of its own.
func (s *Server) take(r *http.Request) (body []byte, call int, err error) {
	body, err = io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, 0, fmt.Errorf("read request: %w", err)
	}
	kept := json.RawMessage(body)
	if !json.Valid(body) {
		kept = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.requests = append(s.requests, Request{Method: r.Method, Path: r.URL.RequestURI(), Body: kept})
	return body, s.calls, nil
}

// next is the script's move for a request.
func (s *Server) next(at turn) (Mode, move, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !at.side {
		s.turns++
	}
	m, text := s.script.decide(s.mode, at)
	return s.mode, m, text
}

// hold keeps a request until the client leaves or the server is closed.
func (s *Server) hold(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-s.closed:
	}
}

func (r Refusal) write(w http.ResponseWriter) {
	for name, value := range r.Header {
		w.Header().Set(name, value)
	}
	writeJSON(w, r.Status, r.Body)
}

// writeJSON writes a whole answer. It is of JSON's type where no other is set.
func writeJSON(w http.ResponseWriter, status int, v any) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	// The client may have left; nobody is there to tell.
	_ = json.NewEncoder(w).Encode(v)
}

// stream is a response of server-sent events.
type stream struct {
	w http.ResponseWriter
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	w.WriteHeader(http.StatusOK)
	return &stream{w: w}
}

// send writes an event with a name, which is the "type" member of data.
func (s *stream) send(data map[string]any) {
	s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", data["type"], encode(data)))
}

// data writes an event without a name.
func (s *stream) data(data map[string]any) {
	s.write("data: " + encode(data) + "\n\n")
}

// write writes whole events and pushes them out.
func (s *stream) write(events string) {
	// The client may have left in the middle of a stream; what follows is then written to nobody.
	_, _ = io.WriteString(s.w, events)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}
