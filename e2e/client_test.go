package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// step is one order to a client, as driver.mjs describes it.
type step map[string]any

// reply is the outcome of one step.
type reply struct {
	N        int             `json:"n"`
	Result   json.RawMessage `json:"result"`
	Error    *failure        `json:"error"`
	Progress []float64       `json:"progress"`
	MS       int             `json:"ms"`
}

type failure struct {
	Code    int    `json:"code"`
	Name    string `json:"name"`
	Message string `json:"message"`
}

// toolResult is what the tests read of a tools/call result.
type toolResult struct {
	IsError bool `json:"isError"`
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
}

func (r reply) tool() toolResult {
	var out toolResult
	_ = json.Unmarshal(r.Result, &out)
	return out
}

// text is the first text of a tool result.
func (r reply) text() string {
	if out := r.tool(); len(out.Content) > 0 {
		return out.Content[0].Text
	}
	return ""
}

func (r reply) String() string {
	if r.Error != nil {
		return fmt.Sprintf("error %d %s: %s", r.Error.Code, r.Error.Name, r.Error.Message)
	}
	return string(r.Result)
}

// event is what a client saw without having asked.
type event struct {
	Event    string          `json:"event"`
	Method   string          `json:"method"`
	Params   json.RawMessage `json:"params"`
	Message  string          `json:"message"`
	How      string          `json:"how"`
	N        int             `json:"n"`
	Progress float64         `json:"progress"`
}

func (e event) String() string {
	return strings.TrimSpace(strings.Join([]string{e.Event, e.Method, e.Message, e.How, string(e.Params)}, " "))
}

// connected is what a client tells of its connection.
type connected struct {
	Era     string `json:"era"`
	Version string `json:"version"`
	Server  struct {
		Name string `json:"name"`
	} `json:"server"`
	MS int `json:"ms"`
}

// driver makes one SDK's client do steps.
type driver interface {
	send(s step, done func(reply)) // done is called once, from any goroutine
	exited() <-chan struct{}       // closed when the client has ended after a close step
}

// session is one client connected to one server.
type session struct {
	*workspace
	driver driver
	hello  connected
	client string
	server server

	subscribed bool          // by a trial of TestBridge
	connecting time.Duration // how long the handshake may take; 0: as long as all may

	mu     sync.Mutex
	events []event
	next   int
}

// connecting is how long a client has for its handshake: longer than the minute that clients give it by themselves.
var connecting = inFull(70 * time.Second)

func (s *session) handshakeLimit() time.Duration {
	if s.connecting > 0 {
		return s.connecting
	}
	return connecting
}

// client is one SDK's client in one mode.
type client struct {
	name  string
	modes string // "legacy", "auto" or "modern"
	start func(s *session, argv []string) (driver, reply)
}

func (c client) String() string { return c.name }

// connect starts a client on a server and waits for the handshake. A failure to connect is returned as the reply.
func connect(t *testing.T, c client, srv server, flags ...string) (*session, reply) {
	t.Helper()
	s := &session{workspace: newWorkspace(t), client: c.name, server: srv}
	var hello reply
	s.driver, hello = c.start(s, s.wrap(srv.argv, flags...))
	if hello.Error == nil {
		if err := json.Unmarshal(hello.Result, &s.hello); err != nil {
			t.Fatalf("connect: %v in %s", err, hello)
		}
	}
	return s, hello
}

func (s *session) record(e event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	s.note("event %s", e)
}

// seen are the events so far, from the given position on.
func (s *session) seen(from int) []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]event(nil), s.events[min(from, len(s.events)):]...)
}

// mark is the position after the events so far.
func (s *session) mark() int { return len(s.seen(0)) }

// begin starts a step and returns its number and where its outcome will be.
func (s *session) begin(st step) (int, <-chan reply) {
	s.mu.Lock()
	s.next++
	n := s.next
	s.mu.Unlock()
	st["n"] = n
	if st["timeout"] == nil { // the drivers of other languages would give a step 30 s
		st["timeout"] = inFull(30 * time.Second).Milliseconds()
	}
	ch := make(chan reply, 1)
	s.note("step %d %v %v", n, st["op"], st["tool"])
	s.driver.send(st, func(r reply) {
		s.note("outcome %d %s", n, r)
		ch <- r
	})
	return n, ch
}

// run is t.Run for a part of the session; it is skipped when an earlier part broke the session.
func (s *session) run(t *testing.T, name string, part func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		if s.broken.Load() {
			t.Skip("the session is broken since an earlier failure")
		}
		part(t)
	})
}

// await waits for a step's outcome.
func (s *session) await(t *testing.T, what string, ch <-chan reply) reply {
	t.Helper()
	select {
	case r := <-ch:
		return r
	case <-time.After(patience + 15*time.Second):
		s.broken.Store(true)
		t.Fatalf("%s: no answer", what)
		return reply{}
	}
}

// do runs a step to its end; an error fails the test.
func (s *session) do(t *testing.T, st step) reply {
	t.Helper()
	what := fmt.Sprint(st["op"], " ", st["tool"], st["uri"])
	_, ch := s.begin(st)
	r := s.await(t, what, ch)
	if r.Error != nil {
		if m := r.Error.Message; strings.Contains(m, "timed out") || strings.Contains(m, "deadline") || strings.Contains(m, "closed") {
			s.broken.Store(true)
		}
		t.Fatalf("%s: %s", what, r)
	}
	return r
}

// call calls a tool; an error or an isError result fails the test.
func (s *session) call(t *testing.T, tool string, args map[string]any) reply {
	t.Helper()
	r := s.do(t, step{"op": "call", "tool": tool, "args": args})
	if r.tool().IsError {
		t.Fatalf("call %s: isError: %s", tool, r)
	}
	return r
}

// awaitEvent waits for an event after the mark.
func (s *session) awaitEvent(t *testing.T, from int, what string, ok func(event) bool) {
	t.Helper()
	found := func() bool {
		for _, e := range s.seen(from) {
			if ok(e) {
				return true
			}
		}
		return false
	}
	if !eventually(found) {
		s.broken.Store(true)
		t.Fatalf("%s: never came; the client saw %v", what, s.seen(from))
	}
}

func notification(method, part string) func(event) bool {
	return func(e event) bool {
		return e.Event == "notification" && e.Method == method && strings.Contains(string(e.Params), part)
	}
}

func asked(method string) func(event) bool {
	return func(e event) bool { return e.Event == "asked" && e.Method == method }
}

// modern says that the session speaks 2026-07-28.
func (s *session) modern() bool { return s.hello.Era == "modern" }
