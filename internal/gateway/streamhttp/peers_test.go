package streamhttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// common is where several fronts keep their sessions: each record is of one of them, and taken by another one when that has ended.
type common struct {
	mu      sync.Mutex
	records map[string]commonRecord
	over    map[string]chan struct{} // by the address of a front
	times   map[string]string        // likewise, of those that have begun another time
	full    bool                     // it takes nothing more
	stuck   bool                     // no session can be given back
	away    bool                     // it answers nothing
}

type commonRecord struct {
	owner string // address; "": nobody
	text  []byte
}

func newCommon() *common {
	return &common{records: map[string]commonRecord{}, over: map[string]chan struct{}{}, times: map[string]string{}}
}

// ends has a front have ended, for all who look.
func (c *common) ends(at string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.overOf(at))
}

func (c *common) overOf(at string) chan struct{} {
	if c.over[at] == nil {
		c.over[at] = make(chan struct{})
	}
	return c.over[at]
}

// begins has a front begin another time.
func (c *common) begins(at, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[at] = name
}

func (c *common) timeOf(at string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "time " + c.times[at]
}

func (c *common) set(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

// share is the store as the front at an address has it.
type share struct {
	of *common
	at string
}

var errAway = errors.New("the store is away")

func (s share) Load(key string) ([]byte, error) {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	r, there := c.records[key]
	switch {
	case c.away:
		return nil, errAway
	case !there:
		return nil, fs.ErrNotExist
	case r.owner != "" && r.owner != s.at && !closed(c.overOf(r.owner)):
		return nil, &Elsewhere{At: r.owner, Time: "time " + c.times[r.owner], Over: c.overOf(r.owner)}
	}
	c.records[key] = commonRecord{s.at, r.text}
	return r.text, nil
}

func (s share) Save(key string, record []byte, _ time.Time) error {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r, there := c.records[key]; {
	case c.away, c.full:
		return errAway
	case there && r.owner != s.at:
		return &Elsewhere{At: r.owner}
	}
	c.records[key] = commonRecord{s.at, record}
	return nil
}

func (s share) Drop(key string) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	delete(s.of.records, key)
	return nil
}

func (s share) release(key string) error {
	c := s.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away || c.stuck {
		return errAway
	}
	c.records[key] = commonRecord{"", c.records[key].text}
	return nil
}

// equal is one of several fronts, behind a server for clients and one for the others.
type equal struct {
	*world
	at     string // where the others reach it
	others *httptest.Server
	off    atomic.Bool // it has no sessions any more
}

// inFlight sends call 7 of a session that is at s, and returns when it has come there; its answer comes later.
func (e *equal) inFlight(t *testing.T, s *testSession, session string) chan answer {
	answered := make(chan answer, 1)
	go func() { answered <- e.do("POST", call(7), session) }()
	s.await(t, "message "+call(7))
	return answered
}

// newEquals starts so many fronts whose hubs answer so; nil: they echo what they are sent.
func newEquals(t *testing.T, many int, answer func(s *testSession, line []byte, reply Stream), opts Options) (all []*equal, store *common) {
	t.Helper()
	store = newCommon()
	if answer == nil {
		answer = keeping
	}
	for range many {
		e := &equal{}
		e.others = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { e.front.passedOn(w, r) }))
		e.at = strings.TrimPrefix(e.others.URL, "http://")
		transport := &http.Transport{ExpectContinueTimeout: time.Hour}
		own, mine := opts, share{store, e.at}
		own.Store = mine
		own.Peers = &Peers{Here: e.at, Transport: transport, StateKey: make([]byte, 32), Time: func() (string, bool) { return store.timeOf(e.at), !e.off.Load() }, Release: mine.release}
		e.world = newWorld(t, &testHub{answer: answer}, own)
		t.Cleanup(func() {
			e.others.CloseClientConnections()
			e.others.Close()
			transport.CloseIdleConnections()
		})
		all = append(all, e)
	}
	return all, store
}

// quiet takes requests without answering, but for initialize and those of clients without sessions.
func quiet(s *testSession, line []byte, reply Stream) {
	if text := string(line); strings.Contains(text, `"initialize"`) || strings.Contains(text, `"_meta"`) {
		keeping(s, line, reply)
	}
}

// kill breaks all connections, as the end of the process does. That it has ended is not known yet.
func (e *equal) kill() {
	_ = e.others.Listener.Close()
	e.others.CloseClientConnections()
}

// initialized is what follows on initialize.
const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// opensAt opens a session at one front and has another one take its first request.
func opensAt(t *testing.T, first, second *equal) (session string) {
	t.Helper()
	session = first.greet("2025-11-25")
	if a := second.do("POST", initialized, session); a.status != 202 {
		t.Fatalf("the first request: %+v", a)
	}
	return session
}

// Several fronts are one: a session is had by whoever was asked for it first, and is served by each; what is refused is refused by each.
func TestEqualFronts(t *testing.T) {
	all, _ := newEquals(t, 3, nil, Options{Origins: []string{"https://app.example"}})
	session := opensAt(t, all[0], all[1])
	all[0].hub.session(0).await(t, "close")
	for n, w := range all {
		got := w.do("POST", call(n), session, "Origin: https://app.example")
		if got.status != 200 || !strings.Contains(got.body, `"name":"t"`) || got.header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("call %d: %+v", n, got)
		}
		if got := w.do("POST", note(n), session); got.status != 202 {
			t.Errorf("notification %d: %+v", n, got)
		}
		for _, tc := range []struct {
			method, body string
			headers      []string
			status       int
		}{
			{"POST", call(1), []string{"Mcp-Session-Id: none"}, 404},
			{"POST", "{", []string{session}, 400},
			{"GET", "", []string{session, "Last-Event-ID: x"}, 400},
			{"PUT", "", nil, 405},
		} {
			if got := w.do(tc.method, tc.body, tc.headers...); got.status != tc.status {
				t.Errorf("%s %s: %+v, want %d", tc.method, tc.body, got, tc.status)
			}
		}
	}
	if a, b, c := all[0].hub.opened(), all[1].hub.opened(), all[2].hub.opened(); a != 1 || b != 1 || c != 0 {
		t.Errorf("sessions were made at the fronts %d, %d and %d times", a, b, c)
	}
	s := all[1].hub.session(0)
	if s.resumed != `"first"` {
		t.Errorf("it goes on from %s", s.resumed)
	}
	get := all[2].open("GET", "", session)
	s.await(t, "attach")
	s.listener().Send([]byte(note(1)))
	get.want("", note(1))
	if got := all[0].do("DELETE", "", session); got.status != 204 {
		t.Errorf("DELETE: %+v", got)
	}
	get.want("END")
	for _, w := range all {
		if got := w.do("POST", call(1), session); got.status != 404 {
			t.Errorf("after DELETE: %+v", got)
		}
	}
}

// A session of which something was asked where it was opened stays there.
func TestASessionThatIsUsedStays(t *testing.T) {
	all, _ := newEquals(t, 2, nil, Options{})
	session := all[0].greet("2025-11-25")
	for n := range 4 {
		if got := all[n%2].do("POST", call(n), session); got.status != 200 {
			t.Errorf("call %d: %+v", n, got)
		}
	}
	if n := all[1].hub.opened(); n != 0 {
		t.Errorf("%d sessions at the other one", n)
	}
}

// Many first requests at once at all fronts: one of these has the session, and all are answered.
func TestASessionIsGivenAwayOnce(t *testing.T) {
	all, _ := newEquals(t, 3, nil, Options{})
	for range 20 {
		session := all[0].greet("2025-11-25")
		var asked sync.WaitGroup
		for n := range 9 {
			asked.Go(func() {
				if got := all[n%3].do("POST", call(n), session); got.status != 200 {
					t.Errorf("call %d: %+v", n, got)
				}
			})
		}
		asked.Wait()
		at := 0
		for _, w := range all {
			at += len(w.front.table.all())
		}
		if at != 1 {
			t.Fatalf("%d fronts have the session", at)
		}
		all[0].do("DELETE", "", session)
	}
}

// slowly is a store that takes a while to find a session.
type slowly struct {
	share
	pause func()
}

func (s slowly) Load(key string) ([]byte, error) {
	s.pause()
	return s.share.Load(key)
}

// Two first requests come to another front at once, as from a client that opens its stream beside its first message. That front has the
// session then: the one that has opened it does not take it back for the second one while it is given away for the first.
func TestTwoFirstRequestsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newCommon()
		opens, asked := share{store, "192.0.2.1:7420"}, share{store, "192.0.2.2:7420"}
		ours := func() (string, bool) { return store.timeOf(opens.at), true }
		a := New(&testHub{answer: keeping}, Options{Store: opens, Peers: &Peers{StateKey: make([]byte, 32), Time: ours, Release: func(key string) error {
			time.Sleep(time.Second)
			return opens.release(key)
		}}})
		b := New(&testHub{answer: keeping}, Options{Store: slowly{asked, func() { time.Sleep(10 * time.Millisecond) }}, Peers: &Peers{StateKey: make([]byte, 32), Release: asked.release, Transport: transport(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			a.passedOn(w, r)
			return w.Result(), nil
		})}})
		session := greetDirect(t, a)
		var both sync.WaitGroup
		for n := range 2 {
			both.Go(func() {
				if w := serve(b, request(t.Context(), "POST", "http://localhost/mcp", call(n), session)); w.Code != 200 {
					t.Errorf("call %d: %d %s", n, w.Code, w.Body)
				}
			})
		}
		both.Wait()
		if n, m := a.hub.(*testHub).opened(), b.hub.(*testHub).opened(); n != 1 || m != 1 {
			t.Errorf("%d sessions were made where it was opened, and %d where it was asked for", n, m)
		}
		b.Close()
		a.Close()
	})
}

// A session that cannot be given away goes on where it is.
func TestASessionThatCannotBeGivenAway(t *testing.T) {
	all, store := newEquals(t, 2, nil, Options{})
	store.stuck = true
	session := all[0].greet("2025-11-25")
	if a := all[1].do("POST", call(1), session); a.status != 200 || all[0].hub.opened() != 2 || all[1].hub.opened() != 0 {
		t.Errorf("%+v, and %d and %d sessions were made", a, all[0].hub.opened(), all[1].hub.opened())
	}
}

// What a client says of itself, and its credentials, do not get to another front.
func TestPassedHeaders(t *testing.T) {
	var got http.Header
	is := newIssuer(t, nil)
	opts := is.options()
	opts.Views = []View{{Name: "ops", Bearer: []string{"of-ops"}}}
	opts.Origins = []string{"https://app.example"}
	opts.Store = elsewhere{&Elsewhere{At: "192.0.2.1:7420", Time: "second"}}
	opts.Peers = &Peers{StateKey: make([]byte, 32), Transport: transport(func(r *http.Request) (*http.Response, error) {
		got = r.Header
		if r.URL.String() != "http://192.0.2.1:7420/mcp" {
			t.Errorf("it is sent to %s", r.URL)
		}
		return canned(202, "", "")(r)
	})}
	w := newWorld(t, nil, opts)
	ada := is.token(claimSet{"sub": "ada"})
	for _, tc := range []struct{ path, token, caller string }{
		{"/mcp/ops?x=y", "of-ops", `"view":"ops"`},
		{"/mcp", ada, `"subject":"sub:ada"`},
	} {
		if a := w.doAt(tc.path, "POST", call(1), "Authorization: Bearer "+tc.token, "Cookie: secret=1", "Origin: https://app.example", "Expect: 100-continue", "Idempotency-Key: 1", "X-Idempotency-Key: 1", "Mcp-Session-Id: x", "Mcp-Param-Region: eu",
			`Outlive-Caller: {"subject":"eve"}`, `Outlive-Caller: {"subject":"root"}`); a.status != 202 {
			t.Errorf("%+v", a)
		}
		if callers := got["Outlive-Caller"]; len(callers) != 1 || !strings.Contains(callers[0], tc.caller) || !strings.Contains(callers[0], `"time":"second"`) || strings.Contains(callers[0], "eve") || strings.Contains(callers[0], "root") {
			t.Errorf("the caller is %q", callers)
		}
		if got.Get("Mcp-Session-Id") != "x" || got.Get("Mcp-Param-Region") != "eu" {
			t.Errorf("what the other front needs is gone: %v", got)
		}
		if got.Get("Expect") != "100-continue" {
			t.Errorf("the message is sent unasked for: %v", got)
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
	if a := w.do("POST", call(1), "Mcp-Session-Id: x", `Outlive-Caller: {"subject":"eve"}`); a.status != 401 || got != nil {
		t.Errorf("without a token: %+v, passed on as %v", a, got)
	}
}

// A front serves nobody of another one who is not named, and what others have read of views is compared with what it has.
func TestPassedCallers(t *testing.T) {
	all, _ := newEquals(t, 1, nil, Options{Views: []View{{Name: "ops"}}})
	f := all[0]
	asked := func(path, method, body string, headers ...string) answer {
		t.Helper()
		w := &world{t: t, url: f.others.URL, client: f.others.Client()}
		return w.doAt(path, method, body, headers...)
	}
	for _, headers := range [][]string{
		nil,
		{"Outlive-Caller: alice"},
		{`Outlive-Caller: {"subject":"a"}`, `Outlive-Caller: {"subject":"b"}`},
	} {
		if a := asked("/mcp", "POST", initializeLine("2025-11-25"), headers...); a.status != 403 {
			t.Errorf("%v: %+v", headers, a)
		}
	}
	if a := asked("/mcp", "POST", initializeLine("2025-11-25"), `Outlive-Caller: {"view":"gone"}`); a.status != 404 {
		t.Errorf("a view that it does not have: %+v", a)
	}
	if n := f.hub.opened(); n != 0 {
		t.Errorf("%d sessions", n)
	}
	alice := `Outlive-Caller: {"subject":"alice","whole":"issuer/alice","scopes":["x"],"view":"ops","remote":"192.0.2.1:7"}`
	a := asked("/mcp", "POST", initializeLine("2025-11-25"), alice)
	session := "Mcp-Session-Id: " + a.header.Get("Mcp-Session-Id")
	if peer := f.hub.session(0).peer; a.status != 200 || peer.Subject != "alice" || peer.View != "ops" {
		t.Errorf("%+v for %+v", a, peer)
	}
	if a := asked("/mcp", "POST", call(1), session, `Outlive-Caller: {"subject":"bob","view":"ops"}`); a.status != 404 {
		t.Errorf("another's session: %+v", a)
	}
	if a := asked("/mcp", "POST", call(1), session, alice); a.status != 421 {
		t.Errorf("its own, of which nothing was asked yet: %+v", a)
	}
	if a := asked("/mcp", "POST", call(1), session, alice); a.status != 200 { // nobody else has looked for it
		t.Errorf("its own session: %+v", a)
	}
	if a := asked("/healthz", "GET", ""); a.status != 404 {
		t.Errorf("another path: %+v", a)
	}
}

// A gateway does not look at who a client says it is.
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

// A front that has begun another time, such as a gateway that was started again, carries out nothing that is for its earlier one: whoever has
// passed that on answers "outcome unknown" as soon as it learns of the end of that time. It is looked up again.
func TestARequestForAnEarlierTime(t *testing.T) {
	all, store := newEquals(t, 2, nil, Options{})
	a, b := all[0], all[1]
	session := a.greet("2025-11-25")
	a.do("POST", initialized, session)
	if got := b.do("POST", call(1), session); got.status != 200 {
		t.Errorf("in its first time: %+v", got)
	}
	earlier := store.timeOf(a.at)
	store.begins(a.at, "2")
	others := &world{t: t, url: a.others.URL, client: a.others.Client()}
	if got := others.do("POST", call(2), session, fmt.Sprintf("Outlive-Caller: {%q:%q}", "time", earlier)); got.status != 421 {
		t.Errorf("for its first time: %+v", got)
	}
	if got := b.do("POST", call(3), session); got.status != 200 {
		t.Errorf("from who knows of its first time: %+v", got)
	}
	s := a.hub.session(0)
	for len(s.events) > 0 {
		if e := <-s.events; e == "message "+call(2) {
			t.Errorf("what was for its first time is carried out")
		}
	}
}

const lostCall = "outcome unknown: the gateway that had this request has ended before it was answered"

// A gateway is killed. Calls that may have been carried out are answered so, before and after their stream has begun; and when it is known
// that it has ended, the session goes on at the one that is asked.
func TestCallsOfAKilledGateway(t *testing.T) {
	all, store := newEquals(t, 2, func(s *testSession, line []byte, reply Stream) {
		if s.resumed != "" || strings.Contains(string(line), `"initialize"`) {
			keeping(s, line, reply)
		}
	}, Options{})
	a, b := all[0], all[1]
	session := a.greet("2025-11-25")
	a.do("POST", initialized, session)
	s := a.hub.session(0)
	answered := b.inFlight(t, s, session)
	began := make(chan *events, 1)
	go func() { began <- b.open("POST", call(8), session) }()
	s.await(t, "message "+call(8))
	s.reply(3).Send([]byte(note(1)))
	e := <-began
	e.want("", note(1))
	get := b.open("GET", "", session)
	s.await(t, "attach")
	get.want("")
	a.kill()
	if a := <-answered; a.status != 200 || !strings.Contains(a.body, `"id":7,`) || !strings.Contains(a.body, lostCall) {
		t.Errorf("before its stream: %+v", a)
	}
	if data, _ := e.next(); !strings.Contains(data, `"id":8,`) || !strings.Contains(data, lostCall) {
		t.Errorf("in its stream: %s", data)
	}
	e.want("END")
	get.want("END")
	go func() { answered <- b.do("POST", call(9), session) }()
	store.ends(a.at)
	if a := <-answered; a.status != 200 || b.hub.session(0).resumed != `"first"` {
		t.Errorf("the next call: %+v", a)
	}
	if got := b.do("GET", "", session, "Last-Event-ID: "+e.lastID); got.status != 400 {
		t.Errorf("the rest of a stream of the other gateway: %+v", got)
	}
}

// What a gateway has not asked for was not carried out, also if it is killed or stands still with the connection open: it is asked of whoever
// has the session next.
func TestAMessageThatNobodyReads(t *testing.T) {
	for how, lose := range map[string]func(a *equal, store *common){
		"killed":       func(a *equal, store *common) { a.kill(); store.ends(a.at) },
		"stands still": func(a *equal, store *common) { store.ends(a.at) },
	} {
		all, store := newEquals(t, 2, nil, Options{})
		a, b := all[0], all[1]
		session := opensAt(t, a, b)
		a, b = b, a // the session is at the second one
		came, over := make(chan struct{}), make(chan struct{})
		a.others.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			close(came)
			<-over
		})
		answered := make(chan answer, 1)
		go func() { answered <- b.do("POST", call(7), session) }()
		<-came
		lose(a, store)
		if got := <-answered; got.status != 200 || !strings.Contains(got.body, `"id":7,"result"`) {
			t.Errorf("%s: %+v", how, got)
		}
		close(over)
	}
}

// A gateway that is about to end takes nothing more, and finishes what it has: what is passed on to it waits for another one. A client of its
// own is told at once that nothing was done.
func TestAGatewayThatLeaves(t *testing.T) {
	all, store := newEquals(t, 2, func(s *testSession, line []byte, reply Stream) {
		if string(line) != call(1) {
			keeping(s, line, reply)
		}
	}, Options{})
	b, a := all[0], all[1]
	session := opensAt(t, b, a)
	calls := make(chan answer, 2)
	go func() { calls <- b.do("POST", call(1), session) }()
	s := a.hub.session(0)
	s.await(t, "message "+call(1))
	a.front.Leave()
	if got := a.do("POST", call(2), session); got.status != 503 {
		t.Errorf("its own client: %+v", got)
	}
	go func() { calls <- b.do("POST", call(3), session) }()
	s.reply(1).Send([]byte(result(1)))
	if got := <-calls; got.body != result(1) {
		t.Errorf("the call in progress: %+v", got)
	}
	store.ends(a.at)
	if got := <-calls; got.status != 200 || !strings.Contains(got.body, `"id":3,"result"`) || b.hub.session(1).resumed == "" {
		t.Errorf("the call that came later: %+v", got)
	}
}

// A gateway that has the sessions no more says nothing of them, whatever its servers have answered; what it was asked may have been done.
// Clients without sessions notice nothing.
func TestAFormerOwnerSaysNothing(t *testing.T) {
	all, _ := newEquals(t, 1, quiet, Options{})
	w := all[0]
	session := w.greet("2025-11-25")
	s := w.hub.session(0)
	answered := w.inFlight(t, s, session)
	began := make(chan *events, 1)
	go func() { began <- w.open("POST", call(8), session) }()
	s.await(t, "message "+call(8))
	s.reply(2).Send([]byte(note(1)))
	e := <-began
	e.want("", note(1))
	get := w.open("GET", "", session)
	s.await(t, "attach")
	get.want("")
	w.off.Store(true) // it was stopped for a while, and wakes up
	s.reply(1).Send([]byte(result(7)))
	s.reply(2).Send([]byte(result(8)))
	s.listener().Send([]byte(note(2)))
	if a := <-answered; a.status != 200 || !strings.Contains(a.body, `"id":7,`) || !strings.Contains(a.body, lostCall) {
		t.Errorf("a call: %+v", a)
	}
	if data, _ := e.next(); !strings.Contains(data, `"id":8,`) || !strings.Contains(data, lostCall) {
		t.Errorf("in its stream: %s", data)
	}
	e.want("END")
	get.want("END")
	if a := w.do("POST", call(9), session); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("another call: %+v", a)
	}
	if a := w.do("POST", initializeLine("2025-11-25")); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("a new session: %+v", a)
	}
	if a := w.do("POST", modernLine(1, "tools/call", `"name":"t",`), modernHeaders("tools/call", "Mcp-Name: t")...); a.status != 200 {
		t.Errorf("a call without a session: %+v", a)
	}
}

// A request whose answer was written at the end of our time with the sessions has one answer, not two.
func TestAnAnswerAtTheEndOfATime(t *testing.T) {
	mine := share{newCommon(), "192.0.2.1:7420"}
	var asked atomic.Int32 // how often it was asked whose the sessions are since the answer is there; negative: it is not
	asked.Store(-1)
	w := newWorld(t, &testHub{answer: quiet}, Options{Store: mine, Peers: &Peers{StateKey: make([]byte, 32), Release: mine.release,
		Time: func() (string, bool) { return "", asked.Load() < 0 || asked.Add(1) == 1 }}})
	session := w.greet("2025-11-25")
	s := w.hub.session(0)
	began := make(chan *events, 1)
	go func() { began <- w.open("POST", call(8), session) }()
	s.await(t, "message "+call(8))
	s.reply(1).Send([]byte(note(1)))
	e := <-began
	e.want("", note(1))
	asked.Store(0)
	s.reply(1).Send([]byte(result(8)))
	e.want(result(8), "END")
}

// All sessions here end when they are not ours any more; calls that were asked may have been carried out.
func TestLeaveSessions(t *testing.T) {
	all, store := newEquals(t, 2, quiet, Options{})
	w := all[0]
	session := w.greet("2025-11-25")
	s := w.hub.session(0)
	answered := w.inFlight(t, s, session)
	w.off.Store(true)
	w.front.LeaveSessions()
	s.await(t, "close")
	if a := <-answered; !strings.Contains(a.body, lostCall) {
		t.Errorf("a call: %+v", a)
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	if len(store.records) != 1 {
		t.Errorf("%d records are left", len(store.records))
	}
}

// What was still to be stored of a session that has ended here with our time is not stored in the next one, in place of what was set since.
func TestAnEarlierTimeStoresNothing(t *testing.T) {
	all, store := newEquals(t, 1, nil, Options{})
	w := all[0]
	session := w.greet("2025-11-25")
	earlier := w.front.table.all()[0]
	w.off.Store(true)
	w.front.LeaveSessions()
	w.off.Store(false) // they are ours again
	w.do("POST", keepNote("second"), session)
	w.settle()
	if w.front.writer.write(earlier) == nil {
		t.Error("whoever opens it believes that it is stored")
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	for _, r := range store.records {
		if !strings.Contains(string(r.text), `"second"`) {
			t.Errorf("it has %s", r.text)
		}
	}
}

// A stream of a session that cannot be had now is held open: a status that says so ends the session of a client of the Go SDK. It ends when
// the session can be had, and its client opens it again.
func TestAStreamWaitsForItsSession(t *testing.T) {
	all, store := newEquals(t, 1, nil, Options{})
	w := all[0]
	session := w.greet("2025-11-25")
	w.off.Store(true)
	w.front.LeaveSessions()
	store.set(true)
	get := w.open("GET", "", session)
	if get.resp.StatusCode != 200 || get.resp.Header.Get("Content-Type") != eventStream {
		t.Fatalf("it is answered %v", get.resp)
	}
	store.set(false)
	w.off.Store(false)
	get.want("END")
	again := w.open("GET", "", session)
	s := w.hub.session(1)
	s.await(t, "attach")
	s.listener().Send([]byte(note(1)))
	again.want("", note(1))
	if got := w.do("GET", "", "Mcp-Session-Id: unknown"); got.status != 404 {
		t.Errorf("%+v", got)
	}
}

// No session is opened that the others could not find.
func TestASessionThatCannotBeStored(t *testing.T) {
	all, store := newEquals(t, 1, nil, Options{})
	store.full = true
	if a := all[0].do("POST", initializeLine("2025-11-25")); a.header.Get("Mcp-Session-Id") != "" || !strings.Contains(a.body, `"id":0,"error":`) || !strings.Contains(a.body, "could not be stored") {
		t.Errorf("%+v", a)
	}
	all[0].hub.session(0).await(t, "close")
}

// A session for which a front has no room goes on at another one that has some.
func TestASessionForWhichThereIsNoRoom(t *testing.T) {
	all, store := newEquals(t, 3, nil, Options{MaxSessions: 1})
	a, full, c := all[0], all[1], all[2]
	session := a.greet("2025-11-25")
	a.do("POST", initialized, session)
	full.greet("2025-11-25")
	a.kill()
	store.ends(a.at)
	if got := full.do("POST", call(1), session); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("without room: %+v", got)
	}
	for n, w := range []*equal{c, full} {
		if got := w.do("POST", call(n), session); got.status != 200 {
			t.Errorf("call %d: %+v", n, got)
		}
	}
	if n := c.hub.opened(); n != 1 {
		t.Errorf("%d sessions where there is room", n)
	}
}

// A session that another front has by now, whatever has happened, ends here when it is stored.
func TestASessionThatWasTaken(t *testing.T) {
	all, store := newEquals(t, 1, nil, Options{})
	session := all[0].greet("2025-11-25")
	store.mu.Lock()
	for key, r := range store.records {
		store.records[key] = commonRecord{"192.0.2.1:1", r.text}
	}
	store.mu.Unlock()
	all[0].do("POST", keepNote("second"), session)
	all[0].hub.session(0).await(t, "close")
	if n := len(all[0].front.table.all()); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// elsewhere is a store whose sessions another front has.
type elsewhere struct{ err error }

func (e elsewhere) Load(string) ([]byte, error)        { return nil, e.err }
func (elsewhere) Save(string, []byte, time.Time) error { return nil }
func (elsewhere) Drop(string) error                    { return nil }

// transport is a way to other fronts.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// canned is one answer, and says at its end that there should have been more, unless it is empty.
func canned(status int, media, body string) transport {
	return func(r *http.Request) (*http.Response, error) {
		reached(r)
		text := io.Reader(strings.NewReader(""))
		if media != "" {
			text = io.MultiReader(strings.NewReader(body), failing{})
		}
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(text), ContentLength: -1}, nil
	}
}

// reached sends a request's body to the other front.
func reached(r *http.Request) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

// brokenBefore says that the connection was broken before anything was written, and another one is looked for.
func brokenBefore(r *http.Request) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GetConn != nil {
		trace.GetConn(r.URL.Host)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// passesTo are the options of a front whose sessions are elsewhere.
func passesTo(other transport) Options {
	return Options{Store: elsewhere{&Elsewhere{At: "192.0.2.1:7420"}}, Peers: &Peers{StateKey: make([]byte, 32), Transport: other, Release: func(string) error { return nil }}}
}

// Nobody takes a part of an answer for all of it: what cannot be ended well breaks.
func TestHalfAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		name, method, body string
		other              transport
		want               string // what its end is like; "": the connection breaks
	}{
		{"after an event", "POST", call(7), canned(200, eventStream, "data: {}\n\n"), lostCall},
		{"before the first", "POST", call(7), canned(200, eventStream, ""), lostCall},
		{"half an event", "POST", call(7), canned(200, eventStream, "data: {}\n\ndata: {"), ""},
		{"the end of one byte", "POST", call(7), canned(200, eventStream, "\n"), ""},
		{"half a body", "POST", call(7), canned(200, "application/json", "{}\n\n"), ""},
		{"a GET stream", "GET", "", canned(200, eventStream, "data: {}\n\n"), "data: {}\n\n"},
		{"half an event of a GET stream", "GET", "", canned(200, eventStream, "data: {"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil, passesTo(tc.other))
			resp, err := w.client.Do(request(t.Context(), tc.method, w.url+"/mcp", tc.body, "Mcp-Session-Id: x"))
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

// flushes is a response that knows what was flushed.
type flushes struct {
	*httptest.ResponseRecorder
	flushed string
}

func (f *flushes) Flush() {
	f.ResponseRecorder.Flush()
	f.flushed = f.Body.String()
}

// An answer in a stream leaves with the end of the stream: if its front was killed in between, another one that passes it on would answer
// "outcome unknown" behind it.
func TestAnAnswerLeavesWithTheEndOfItsStream(t *testing.T) {
	f := New(&testHub{answer: func(s *testSession, line []byte, reply Stream) {
		if string(line) == call(1) {
			reply.Send([]byte(note(1)))
		}
		echo(s, line, reply)
	}}, Options{})
	defer f.Close()
	r := request(t.Context(), "POST", "http://localhost/mcp", call(1), greetDirect(t, f))
	r.RemoteAddr = "127.0.0.1:1"
	w := &flushes{ResponseRecorder: httptest.NewRecorder()}
	f.ServeHTTP(w, r)
	if got := w.Body.String(); !strings.Contains(got, note(1)) || !strings.Contains(got, `"id":1,"result"`) || strings.Contains(w.flushed, `"id":1,`) {
		t.Errorf("of %q the part %q was flushed before the end", got, w.flushed)
	}
}

// No answer at all to what may have been sent: what is said depends on what was asked.
func TestNoAnswer(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		status     int
		says       string
	}{
		{"a call", call(7), 200, lostCall},
		{"a notification", note(1), 502, "was lost before it answered"},
	} {
		w := newWorld(t, nil, passesTo(func(r *http.Request) (*http.Response, error) {
			reached(r)
			return nil, io.EOF
		}))
		if a := w.do("POST", tc.body, "Mcp-Session-Id: x"); a.status != tc.status || !strings.Contains(a.body, tc.says) {
			t.Errorf("%s: %+v", tc.name, a)
		}
	}
}

// A request waits for a gateway that cannot be reached, also if there was a connection to it, and goes on here when that is known to have
// ended; it does not wait for ever, nor longer than its client.
func TestPeerPatience(t *testing.T) {
	for _, tc := range []struct {
		name       string
		over       time.Duration // when the other gateway is known to have ended; 0: never
		leaves     time.Duration // when the client leaves; 0: never
		status     int
		least, max time.Duration
	}{
		{"it has ended", 20 * time.Second, 0, 200, 20 * time.Second, 21 * time.Second},
		{"for ever", 0, 0, 503, peerPatience, peerPatience + 2*lookAgain},
		{"a client that leaves", 0, 10 * time.Second, 0, 10 * time.Second, 11 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newCommon()
				before := New(&testHub{answer: keeping}, Options{Store: share{store, "192.0.2.1:7420"}})
				session := greetDirect(t, before)
				here := share{store, "192.0.2.2:7420"}
				f := New(&testHub{answer: keeping}, Options{Store: here, Peers: &Peers{StateKey: make([]byte, 32), Release: here.release, Transport: transport(func(r *http.Request) (*http.Response, error) {
					reached(r)
					brokenBefore(r)
					return nil, errors.New("nobody listens")
				})}})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.over > 0 {
					time.AfterFunc(tc.over, func() { store.ends("192.0.2.1:7420") })
				}
				if tc.leaves > 0 {
					time.AfterFunc(tc.leaves, cancel)
				}
				begun := time.Now()
				w := serve(f, request(ctx, "POST", "http://localhost/mcp", call(1), session))
				if took := time.Since(begun); took < tc.least || took > tc.max || tc.status != 0 && w.Code != tc.status {
					t.Errorf("%d %s after %v", w.Code, w.Body, took)
				}
				f.Close()
				before.Close()
			})
		})
	}
}

// A stream that waits for a gateway which cannot be reached is a stream: an upgrade or a stop does not wait for it.
func TestAStreamThatWaitsForAGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(&testHub{}, passesTo(func(*http.Request) (*http.Response, error) { return nil, errors.New("nobody listens") }))
		time.AfterFunc(5*time.Second+lookAgain/2, func() {
			if n := f.endless.Load(); n != 1 {
				t.Errorf("%d streams", n)
			}
			f.drain.begin()
		})
		begun := time.Now()
		w := serve(f, request(t.Context(), "GET", "http://localhost/mcp", "", "Mcp-Session-Id: x"))
		if took := time.Since(begun); took > 6*time.Second || w.Code != 200 {
			t.Errorf("%d %s after %v", w.Code, w.Body, took)
		}
		f.Close()
	})
}

// A front among others shuts down as any other: endless streams end at once, also those that are passed on; calls are finished.
func TestShutdownAmongOthers(t *testing.T) {
	all, _ := newEquals(t, 2, quiet, Options{})
	a, b := all[0], all[1]
	session := a.greet("2025-11-25")
	a.do("POST", initialized, session)
	s := a.hub.session(0)
	get := b.open("GET", "", session)
	s.await(t, "attach")
	get.want("")
	calling := make(chan answer, 1)
	go func() { calling <- b.do("POST", call(1), session) }()
	s.await(t, "message "+call(1))
	b.front.drain.begin()
	get.want("END")
	away(t, s.listener())
	s.reply(2).Send([]byte(result(1)))
	if a := <-calling; a.status != 200 || a.body != result(1) {
		t.Errorf("the call: %+v", a)
	}
}
