package streamhttp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// core is a front that believes other fronts whose a request is, behind a server that can be killed.
type core struct {
	*world
	server *httptest.Server
}

func newCore(t *testing.T, hub *testHub, opts Options) *core {
	t.Helper()
	opts.Admitted = true
	front := New(hub, opts)
	server := httptest.NewServer(front)
	t.Cleanup(func() {
		front.Close()
		server.Close()
	})
	return &core{&world{t: t, hub: hub, front: front, url: server.URL, client: server.Client()}, server}
}

// forward is Options.Forward of a front before this one.
func (c *core) forward(t *testing.T) func(*http.Request) (*http.Response, error) {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return func(r *http.Request) (*http.Response, error) {
		r.URL.Host = strings.TrimPrefix(c.server.URL, "http://")
		return transport.RoundTrip(r)
	}
}

// kill breaks all connections, as the end of the process does.
func (c *core) kill() { c.server.CloseClientConnections() }

// before is a front before the core.
func (c *core) before(t *testing.T, opts Options) *world {
	t.Helper()
	opts.Forward = c.forward(t)
	w := newWorld(t, nil, opts)
	w.hub = c.hub
	return w
}

// Two fronts before one core are one: sessions of both eras, their streams, and what is refused.
func TestFrontsBeforeACoreAreOne(t *testing.T) {
	c := newCore(t, &testHub{}, Options{})
	a, b := c.before(t, Options{}), c.before(t, Options{})
	session := a.greet("2025-11-25")
	for n, w := range []*world{a, b} {
		if got := w.do("POST", call(n), session); got.status != 200 || !strings.Contains(got.body, `"name":"t"`) {
			t.Errorf("call %d: %+v", n, got)
		}
		if got := w.do("POST", note(n), session); got.status != 202 {
			t.Errorf("notification %d: %+v", n, got)
		}
		if got := w.do("POST", modernLine(n, "tools/call", `"name":"t",`), modernHeaders("tools/call", "Mcp-Name: t")...); got.status != 200 || !strings.Contains(got.body, `"name":"t"`) {
			t.Errorf("call %d without a session: %+v", n, got)
		}
		for _, tc := range []struct {
			method, body string
			headers      []string
			status       int
		}{
			{"POST", call(1), []string{"Mcp-Session-Id: none"}, 404},
			{"POST", "{", []string{session}, 400},
			{"POST", modernLine(1, "tools/call", `"name":"t",`), modernHeaders("tools/list"), 400},
			{"GET", "", []string{session, "Last-Event-ID: x"}, 400},
			{"PUT", "", nil, 405},
		} {
			if got := w.do(tc.method, tc.body, tc.headers...); got.status != tc.status {
				t.Errorf("%s %s: %+v, want %d", tc.method, tc.body, got, tc.status)
			}
		}
	}
	s := c.hub.session(0)
	get := b.open("GET", "", session)
	s.await(t, "attach")
	s.listener().Send([]byte(note(1)))
	get.want("", note(1))
	if got := a.do("DELETE", "", session); got.status != 204 {
		t.Errorf("DELETE: %+v", got)
	}
	get.want("END")
	if got := b.do("POST", call(1), session); got.status != 404 {
		t.Errorf("after DELETE: %+v", got)
	}
}

// The answer of a call whose front is killed is at the other one, for a client with an event id.
func TestAnswerIsAtAnotherFront(t *testing.T) {
	c := newCore(t, &testHub{answer: silent}, Options{})
	a, b := c.before(t, Options{}), c.before(t, Options{})
	session := a.greet("2025-11-25")
	s := c.hub.session(0)
	started := make(chan *events, 1)
	go func() { started <- a.open("POST", call(1), session) }()
	s.await(t, "message "+call(1))
	s.reply(1).Send([]byte(note(1)))
	e := <-started
	e.want("", note(1))
	a.front.Close() // its requests end
	s.await(t, "gone")
	s.reply(1).Send([]byte(result(1)))
	b.open("GET", "", session, "Last-Event-ID: "+e.lastID).want(result(1), "END")
}

// What a client says of itself, and its credentials, do not get to the core.
func TestForwardedHeaders(t *testing.T) {
	var got http.Header
	is := newIssuer(t, nil)
	opts := is.options()
	opts.Views = []View{{Name: "ops", Bearer: []string{"of-ops"}}}
	opts.Origins = []string{"https://app.example"}
	opts.Forward = func(r *http.Request) (*http.Response, error) {
		got = r.Header
		return nil, ErrNotSent
	}
	w := newWorld(t, nil, opts)
	ada := is.token(claimSet{"sub": "ada"})
	for _, tc := range []struct{ token, caller string }{
		{"of-ops", `"view":"ops"`},
		{ada, `"subject":"sub:ada"`},
	} {
		a := w.do("POST", call(1), "Authorization: Bearer "+tc.token, "Cookie: secret=1", "Origin: https://app.example", "Idempotency-Key: 1", "X-Idempotency-Key: 1", "Mcp-Session-Id: x", "Mcp-Param-Region: eu",
			`Outlive-Caller: {"subject":"eve"}`, `Outlive-Caller: {"subject":"root"}`)
		if a.status != 503 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, `"id":1`) {
			t.Errorf("nothing was sent, and the client is told: %+v", a)
		}
		if callers := got["Outlive-Caller"]; len(callers) != 1 || !strings.Contains(callers[0], tc.caller) || strings.Contains(callers[0], "eve") || strings.Contains(callers[0], "root") {
			t.Errorf("the caller is %q", callers)
		}
		if got.Get("Mcp-Session-Id") != "x" || got.Get("Mcp-Param-Region") != "eu" {
			t.Errorf("what the core needs is gone: %v", got)
		}
		for _, own := range []string{"Authorization", "Cookie", "Origin", "Idempotency-Key", "X-Idempotency-Key"} { // with the last two net/http sends a call twice
			if got.Get(own) != "" {
				t.Errorf("%s was for the front: %v", own, got)
			}
		}
	}
	if text := fmt.Sprint(got); strings.Contains(text, ada) {
		t.Errorf("a token is passed on: %s", text)
	}
	got = nil
	if a := w.do("POST", call(1), `Outlive-Caller: {"subject":"eve"}`); a.status != 401 || got != nil {
		t.Errorf("without a token: %+v, passed on as %v", a, got)
	}
}

// A core serves nobody who is not named, and what replicas have read of views is compared with what it has.
func TestCallersOfACore(t *testing.T) {
	c := newCore(t, &testHub{}, Options{Views: []View{{Name: "ops"}}})
	for _, headers := range [][]string{
		nil,
		{"Outlive-Caller: alice"},
		{`Outlive-Caller: {"subject":"a"}`, `Outlive-Caller: {"subject":"b"}`},
	} {
		if a := c.do("POST", initializeLine("2025-11-25"), headers...); a.status != 403 {
			t.Errorf("%v: %+v", headers, a)
		}
	}
	if a := c.do("POST", initializeLine("2025-11-25"), `Outlive-Caller: {"view":"gone"}`); a.status != 404 {
		t.Errorf("a view that the core does not have: %+v", a)
	}
	if n := c.hub.opened(); n != 0 {
		t.Errorf("%d sessions", n)
	}
	alice := `Outlive-Caller: {"subject":"alice","whole":"issuer/alice","scopes":["x"],"view":"ops","remote":"192.0.2.1:7"}`
	a := c.do("POST", initializeLine("2025-11-25"), alice)
	session := "Mcp-Session-Id: " + a.header.Get("Mcp-Session-Id")
	if peer := c.hub.session(0).peer; a.status != 200 || peer.Subject != "alice" || peer.View != "ops" {
		t.Errorf("%+v for %+v", a, peer)
	}
	if a := c.do("POST", call(1), session, alice); a.status != 200 {
		t.Errorf("its own session: %+v", a)
	}
	if a := c.do("POST", call(1), session, `Outlive-Caller: {"subject":"bob","view":"ops"}`); a.status != 404 {
		t.Errorf("another's session: %+v", a)
	}
	if a := c.doAt("/else", "GET", ""); a.status != 404 {
		t.Errorf("another path: %+v", a)
	}
}

// A gateway without replicas does not look at who a client says it is.
func TestACallerThatNamesItself(t *testing.T) {
	w := newWorld(t, &testHub{}, Options{Bearer: []string{"of-alice", "of-bob"}})
	a := w.do("POST", initializeLine("2025-11-25"), "Authorization: Bearer of-alice")
	session, alice := "Mcp-Session-Id: "+a.header.Get("Mcp-Session-Id"), w.hub.session(0).peer.Subject
	if a.status != 200 || alice == "" {
		t.Fatalf("%+v for %q", a, alice)
	}
	claim := fmt.Sprintf("Outlive-Caller: {%q:%q}", "subject", alice)
	if a := w.do("POST", call(1), session, claim, "Authorization: Bearer of-bob"); a.status != 404 {
		t.Errorf("with another's token: %+v", a)
	}
	if a := w.do("POST", call(1), session, claim); a.status != 401 {
		t.Errorf("without a token: %+v", a)
	}
	if a := w.do("POST", call(1), session, "Authorization: Bearer of-alice"); a.status != 200 {
		t.Errorf("with its own: %+v", a)
	}
}

const lostCall = "outcome unknown: the process that has the gateway's servers was lost before it answered"

// The core is killed. Requests that may have been carried out are answered so, before and after their stream has begun.
func TestCallsOfAKilledCore(t *testing.T) {
	modern := modernLine(7, "tools/call", `"name":"t",`)
	for _, tc := range []struct {
		name, body string
		headers    []string // nil: those of a session
		prime      []string
	}{
		{"legacy", call(7), nil, []string{""}},
		{"modern", modern, modernHeaders("tools/call", "Mcp-Name: t"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCore(t, &testHub{answer: silent, news: make(chan struct{}, 2)}, Options{})
			w := c.before(t, Options{})
			headers, replies := tc.headers, 0
			if headers == nil {
				headers, replies = []string{w.greet("2025-11-25")}, 1
				<-c.hub.news
			}
			answered := make(chan answer, 1)
			go func() { answered <- w.do("POST", tc.body, headers...) }()
			began := make(chan *events, 1)
			if tc.headers != nil {
				<-c.hub.news
			}
			s := c.hub.session(0)
			s.await(t, "message "+tc.body)
			go func() { began <- w.open("POST", strings.Replace(tc.body, "7", "8", 1), headers...) }()
			with := s
			if tc.headers != nil { // each request is one of its own
				<-c.hub.news
				with = c.hub.session(1)
			} else {
				replies++
			}
			with.await(t, "message ")
			with.reply(replies).Send([]byte(note(1)))
			e := <-began
			e.want(append(tc.prime, note(1))...)
			c.kill()
			if a := <-answered; a.status != 200 || !strings.Contains(a.body, `"id":7,`) || !strings.Contains(a.body, lostCall) {
				t.Errorf("before its stream: %+v", a)
			}
			if data, _ := e.next(); !strings.Contains(data, `"id":8,`) || !strings.Contains(data, lostCall) {
				t.Errorf("in its stream: %s", data)
			}
			e.want("END")
		})
	}
}

// answers is a core that gives one answer, and says at its end that there should have been more.
func answers(status int, media, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		text := io.MultiReader(strings.NewReader(body), failing{})
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(text)}, nil
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Nobody takes a part of an answer for all of it: what cannot be ended well breaks.
func TestHalfAnAnswer(t *testing.T) {
	listen := modernLine(7, "subscriptions/listen", "")
	for _, tc := range []struct {
		name, method, body string
		headers            []string
		forward            func(*http.Request) (*http.Response, error)
		want               string // "": the connection breaks
	}{
		{"after an event", "POST", call(7), nil, answers(200, eventStream, "data: {}\n\n"), lostCall},
		{"before the first", "POST", call(7), nil, answers(200, eventStream, ""), lostCall},
		{"half an event", "POST", call(7), nil, answers(200, eventStream, "data: {}\n\ndata: {"), ""},
		{"the end of one byte", "POST", call(7), nil, answers(200, eventStream, "\n"), ""},
		{"half a body", "POST", call(7), nil, answers(200, "application/json", "{}\n\n"), ""},
		{"a GET stream", "GET", "", []string{"Mcp-Session-Id: x"}, answers(200, eventStream, "data: {}\n\n"), ""},
		{"a subscription", "POST", listen, modernHeaders("subscriptions/listen"), answers(200, eventStream, "data: {}\n\n"), ""},
		{"a notification", "POST", note(1), nil, answers(202, "", ""), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil, Options{Forward: tc.forward})
			resp, err := w.client.Do(request(t.Context(), tc.method, w.url+"/mcp", tc.body, tc.headers...))
			text := []byte(nil)
			if err == nil {
				defer resp.Body.Close()
				text, err = io.ReadAll(resp.Body)
			}
			if (err == nil) != (tc.want != "") || !strings.Contains(string(text), tc.want) {
				t.Errorf("%s %v", text, err)
			}
		})
	}
}

// No answer at all: what is said depends on what was asked, and on whether it was sent.
func TestNoAnswer(t *testing.T) {
	gone := errors.New("EOF")
	for _, tc := range []struct {
		name, method, body string
		headers            []string
		err                error
		status             int
		says               string
	}{
		{"not sent", "POST", call(7), nil, fmt.Errorf("%w: refused", ErrNotSent), 503, `"id":7,`},
		{"a notification", "POST", note(1), nil, gone, 502, "was lost before it answered"},
		{"a subscription", "POST", modernLine(7, "subscriptions/listen", ""), modernHeaders("subscriptions/listen"), gone, 503, "cannot be reached now"},
		{"DELETE", "DELETE", "", nil, gone, 503, "cannot be reached now"},
	} {
		w := newWorld(t, nil, Options{Forward: func(*http.Request) (*http.Response, error) { return nil, tc.err }})
		a := w.do(tc.method, tc.body, tc.headers...)
		if a.status != tc.status || !strings.Contains(a.body, tc.says) || (a.status == 503) != (a.header.Get("Retry-After") != "") {
			t.Errorf("%s: %+v", tc.name, a)
		}
	}
}

// A stream of a session waits for a core that is away: a status that says so ends the session of a client of the Go SDK.
func TestStreamWaitsForACore(t *testing.T) {
	c := newCore(t, &testHub{}, Options{})
	session := c.before(t, Options{}).greet("2025-11-25")
	errs := make(chan error, 2)
	through := c.forward(t)
	w := newWorld(t, nil, Options{Forward: func(r *http.Request) (*http.Response, error) {
		select {
		case err := <-errs:
			return nil, err
		default:
			return through(r)
		}
	}})
	errs <- fmt.Errorf("%w: refused", ErrNotSent)
	errs <- errors.New("EOF")
	get := w.open("GET", "", session)
	s := c.hub.session(0)
	s.await(t, "attach")
	s.listener().Send([]byte(note(1)))
	get.want("", note(1))

	errs <- ErrNotSent
	w.open("GET", "", "Mcp-Session-Id: unknown").want("END") // the next one is told why
	if got := w.do("GET", "", "Mcp-Session-Id: unknown"); got.status != 404 {
		t.Errorf("%+v", got)
	}
}

// A front before a core shuts down as any other: endless streams end at once, calls are finished.
func TestShutdownBeforeACore(t *testing.T) {
	hub := &testHub{answer: silent}
	c := newCore(t, hub, Options{})
	address, stop := run(t, nil, Options{Forward: c.forward(t)})
	w := at(t, address)
	session, _ := shutDown(t, w, hub, stop)
	if a := c.before(t, Options{}).do("POST", call(2), session, "MCP-Protocol-Version: 2020-01-01"); a.status == 404 {
		t.Errorf("the session has ended with the front: %+v", a)
	}
}

// Pages of the core, and its requests that never end.
func TestPagesOfACore(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "well, ", r.Header.Get("Cookie")) })
	began, ended := make(chan struct{}), make(chan struct{})
	c := newCore(t, &testHub{}, Options{Extra: map[string]http.Handler{"/healthz": page, "/hidden": page},
		Endless: map[string]func(http.ResponseWriter, *http.Request, <-chan struct{}){"/attend": func(_ http.ResponseWriter, _ *http.Request, over <-chan struct{}) {
			close(began)
			<-over
			close(ended)
		}}})
	w := c.before(t, Options{ForwardExtra: []string{"/healthz"}})
	if a := w.doAt("/healthz", "GET", "", "Cookie: secret"); a.status != 200 || a.body != "well, " {
		t.Errorf("%+v", a)
	}
	for _, tc := range []struct {
		method, path string
		status       int
	}{{"POST", "/healthz", 405}, {"GET", "/hidden", 404}, {"GET", "/attend", 404}} {
		if a := w.doAt(tc.path, tc.method, ""); a.status != tc.status {
			t.Errorf("%s %s: %+v", tc.method, tc.path, a)
		}
	}
	answered := make(chan answer, 1)
	go func() { answered <- c.doAt("/attend", "GET", "") }()
	<-began
	if n := c.front.endless.Load(); n != 1 {
		t.Errorf("%d endless streams", n)
	}
	c.front.endStreams()
	<-ended
	<-answered
}
