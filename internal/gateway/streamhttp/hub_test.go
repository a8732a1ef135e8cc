package streamhttp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

// testHub makes sessions that note what happens to them. answer is called for every message; nil: echo.
type testHub struct {
	answer func(s *testSession, line []byte, reply Stream)
	full   bool // it wants no more sessions
	params map[string][]mcp.ParamHeader

	news chan struct{} // if not nil: gets a token for every session

	mu       sync.Mutex
	sessions []*testSession
}

func (h *testHub) Open(p Peer) Session {
	if h.full {
		return nil
	}
	s := &testSession{hub: h, peer: p, events: make(chan string, 1000)}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sessions = append(h.sessions, s)
	if h.news != nil {
		h.news <- struct{}{}
	}
	return s
}

// Resume refuses the record "unreadable".
func (h *testHub) Resume(p Peer, record []byte, general Stream) (Session, bool) {
	if string(record) == `"unreadable"` {
		return nil, false
	}
	s := h.Open(p)
	if s != nil {
		s.(*testSession).resumed, s.(*testSession).general = string(record), general
	}
	return s, true
}

func (h *testHub) ParamHeaders(_, tool string) []mcp.ParamHeader { return h.params[tool] }

func (h *testHub) session(i int) *testSession {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[i]
}

func (h *testHub) opened() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

type testSession struct {
	hub     *testHub
	peer    Peer
	resumed string      // the record it goes on from
	events  chan string // "message …", "attach", "release", "close"

	mu      sync.Mutex
	general Stream
	replies []Stream
}

func (s *testSession) Message(line []byte, reply Stream) {
	s.mu.Lock()
	s.replies = append(s.replies, reply)
	s.mu.Unlock()
	s.events <- "message " + string(line)
	if s.hub.answer != nil {
		s.hub.answer(s, line, reply)
		return
	}
	echo(s, line, reply)
}

func (s *testSession) Attach(general Stream) {
	s.mu.Lock()
	s.general = general
	s.mu.Unlock()
	s.events <- "attach"
}

func (s *testSession) Release() { s.events <- "release" }
func (s *testSession) Close()   { s.events <- "close" }

func (s *testSession) listener() Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.general
}

func (s *testSession) reply(i int) Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replies[i]
}

// await waits for an event that begins with prefix and returns it.
func (s *testSession) await(t *testing.T, prefix string) string {
	t.Helper()
	limit := time.After(patience)
	var seen []string
	for {
		select {
		case e := <-s.events:
			if strings.HasPrefix(e, prefix) {
				return e
			}
			seen = append(seen, e)
		case <-limit:
			t.Fatalf("no event %q; there were %q", prefix, seen)
		}
	}
}

// away waits until no client reads a stream.
func away(t *testing.T, s Stream) {
	t.Helper()
	await.Until(t, "its client has left", s.(*stream).Abandoned)
}

// echo answers every request with its own params, and initialize with the version it asks for.
func echo(_ *testSession, line []byte, reply Stream) {
	var e jsonrpc.Envelope
	if e.Scan(line) != nil || e.Kind != jsonrpc.Request {
		return
	}
	result := e.Params.Of(line)
	if result == nil {
		result = []byte("{}")
	}
	reply.Send(jsonrpc.AppendResult(nil, e.ID.Of(line), result))
}

// world is a front behind a real server.
type world struct {
	t      *testing.T
	hub    *testHub
	front  *Front
	url    string
	client *http.Client
}

func newWorld(t *testing.T, hub *testHub, opts Options) *world {
	t.Helper()
	front := New(hub, opts)
	server := httptest.NewServer(front)
	t.Cleanup(func() {
		front.Close()
		server.Client().CloseIdleConnections()
		server.Close()
	})
	return &world{t: t, hub: hub, front: front, url: server.URL, client: server.Client()}
}

// request is an HTTP request of a test: a method, a body, and headers as "Name: value". A header given replaces the usual
// one; "Name:" removes it.
func request(ctx context.Context, method, url, body string, headers ...string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
	}
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	fresh := map[string]bool{}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ":")
		value = strings.TrimSpace(value)
		switch {
		case value == "":
			r.Header.Del(name)
		case name == "Host":
			r.Host = value
		case fresh[name]:
			r.Header.Add(name, value)
		default:
			r.Header.Set(name, value)
		}
		fresh[name] = true
	}
	return r
}

// answer is an HTTP response with its whole body.
type answer struct {
	status int
	header http.Header
	body   string
}

func (w *world) do(method, body string, headers ...string) answer {
	w.t.Helper()
	return w.doAt("/mcp", method, body, headers...)
}

func (w *world) doAt(path, method, body string, headers ...string) answer {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp, err := w.client.Do(request(ctx, method, w.url+path, body, headers...))
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func initializeLine(version string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version)
}

// greet opens a legacy session and returns the header that names it.
func (w *world) greet(version string) string {
	w.t.Helper()
	a := w.do("POST", initializeLine(version))
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || id == "" {
		w.t.Fatalf("initialize: %+v", a)
	}
	return "Mcp-Session-Id: " + id
}

// open starts a request whose answer is an event stream.
func (w *world) open(method, body string, headers ...string) *events {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := w.client.Do(request(ctx, method, w.url+"/mcp", body, headers...))
	if err != nil {
		cancel()
		w.t.Fatal(err)
	}
	e := &events{t: w.t, resp: resp, cancel: cancel, lines: make(chan string, 1000)}
	go func() {
		defer close(e.lines)
		defer resp.Body.Close()
		in := bufio.NewScanner(resp.Body)
		for in.Buffer(nil, 16<<20); in.Scan(); {
			e.lines <- in.Text()
		}
	}()
	w.t.Cleanup(e.leave)
	return e
}

// events reads an event stream.
type events struct {
	t      *testing.T
	resp   *http.Response
	cancel context.CancelFunc
	lines  chan string
	lastID string
}

// leave closes the connection, as a client does that has lost interest or its network.
func (e *events) leave() { e.cancel() }

// next returns the data of the next event, "" for one without; ok is false at the end of the stream.
func (e *events) next() (data string, ok bool) {
	e.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, more := <-e.lines:
			if !more {
				return "", false
			}
			if id, found := strings.CutPrefix(line, "id: "); found {
				e.lastID = id
			}
			if d, found := strings.CutPrefix(line, "data:"); found {
				return strings.TrimSpace(d), true
			}
		case <-limit:
			e.t.Fatal("the event stream says nothing")
		}
	}
}

// want reads events and compares their data, "END" for the end of the stream.
func (e *events) want(wanted ...string) {
	e.t.Helper()
	for _, one := range wanted {
		data, ok := e.next()
		if !ok {
			data = "END"
		}
		if data != one {
			e.t.Fatalf("event: %s\n want: %s", data, one)
		}
	}
}

func note(n int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":{"n":%d}}`, n) }

func result(id any) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{}}`, id) }

func call(id any) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":"tools/call","params":{"name":"t"}}`, id)
}

// silent takes requests without answering, but for initialize.
func silent(s *testSession, line []byte, reply Stream) {
	if strings.Contains(string(line), `"initialize"`) {
		echo(s, line, reply)
	}
}

const modernMeta = `"_meta":{"` + mcp.MetaProtocolVersion + `":"2026-07-28","` + mcp.MetaClientCapabilities + `":{}}`

// modernLine is a request of the modern era; params are further members, each with a comma at its end.
func modernLine(id any, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"method":%q,"params":{%s%s}}`, id, method, params, modernMeta)
}

func modernHeaders(method string, more ...string) []string {
	return append([]string{"MCP-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}, more...)
}
