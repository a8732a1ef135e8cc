package streamhttp

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/sessionstore"
)

// keeping answers initialize and has its record stored before; a note "keep X" has X stored.
func keeping(s *testSession, line []byte, reply Stream) {
	if strings.Contains(string(line), `"initialize"`) && s.peer.Keep != nil {
		s.peer.Keep([]byte(`"first"`))
	}
	if _, what, ok := strings.Cut(string(line), "keep "); ok && s.peer.Keep != nil {
		what, _, _ = strings.Cut(what, `"`)
		s.peer.Keep(fmt.Appendf(nil, "%q", what))
	}
	echo(s, line, reply)
}

func keepNote(what string) string {
	return `{"jsonrpc":"2.0","method":"notifications/progress","params":{"x":"keep ` + what + `"}}`
}

// next is a front that takes over what w has stored, as another process would after w was killed.
func (w *world) next(opts Options) *world { return newWorld(w.t, &testHub{answer: keeping}, opts) }

// settle waits until everything that was to be stored is.
func (w *world) settle() { w.front.writer.wait() }

func TestASessionGoesOnWithTheNextFront(t *testing.T) {
	opts := Options{Store: sessionstore.New("", 0)}
	w := newWorld(t, &testHub{answer: keeping}, opts)
	session := w.greet("2025-11-25")

	killed := w.next(opts) // the record was stored before the client had the session's id
	if a := killed.do("POST", call(1), session); a.status != 200 || killed.hub.session(0).resumed != `"first"` {
		t.Fatalf("%+v, from %s", a, killed.hub.session(0).resumed)
	}
	killed.do("POST", keepNote("second"), session)
	killed.settle()

	again := w.next(opts)
	get := again.open("GET", "", session)
	s := again.hub.session(0)
	s.await(t, "attach")
	s.listener().Send([]byte(note(1)))
	get.want("", note(1))
	if s.resumed != `"second"` {
		t.Errorf("resumed from %s", s.resumed)
	}
	if a := again.do("POST", initializeLine("2025-11-25"), session); a.status != 200 {
		t.Errorf("a second initialize: %+v", a)
	}
	if again.hub.opened() != 1 {
		t.Errorf("%d sessions were made, want 1", again.hub.opened())
	}
}

// One that ends in good order leaves its sessions behind, too, and tells no client that they have ended. A call that it was asked may have
// been carried out, so that no client is told to send it again.
func TestAStopEndsNoStoredSession(t *testing.T) {
	opts := Options{Store: sessionstore.New("", 0)}
	w := newWorld(t, &testHub{answer: func(s *testSession, line []byte, reply Stream) {
		if strings.Contains(string(line), "initialize") {
			keeping(s, line, reply)
		}
	}}, opts)
	session := w.greet("2025-11-25")
	waiting := make(chan answer, 1)
	go func() { waiting <- w.do("POST", call(1), session) }()
	w.hub.session(0).await(t, "message "+call(1))
	w.front.Close()
	w.hub.session(0).await(t, "close")
	if a := <-waiting; a.status != 200 || a.header.Get("Retry-After") != "" || !strings.Contains(a.body, `"id":1,"error":`) || !strings.Contains(a.body, "outcome unknown") {
		t.Errorf("a call that was waiting: %+v", a)
	}
	if a := w.next(opts).do("POST", call(1), session); a.status != 200 {
		t.Errorf("the next front: %+v", a)
	}
}

func TestWhatHasEndedStaysSo(t *testing.T) {
	store := sessionstore.New("", 0)
	opts := Options{Store: store}
	w := newWorld(t, &testHub{answer: keeping}, opts)
	session := w.greet("2025-11-25")
	if a := w.do("DELETE", "", session); a.status != 204 {
		t.Fatalf("DELETE: %+v", a)
	}
	for _, f := range []*world{w, w.next(opts)} {
		if a := f.do("POST", call(1), session); a.status != 404 {
			t.Errorf("a deleted session: %+v", a)
		}
	}
	refusing := newWorld(t, &testHub{answer: silent}, opts)
	if a := refusing.do("POST", call(1), "Mcp-Session-Id: never"); a.status != 404 {
		t.Errorf("a session that never was: %+v", a)
	}
	if n := len(store.Unsaved()); n != 0 {
		t.Errorf("%d records are left", n)
	}
}

// A record opens its session to its owner only, also if the tokens stand in another order by then. It says neither who that
// is nor what the session is called.
func TestAStoredSessionBelongsToItsOwner(t *testing.T) {
	store := sessionstore.New("", 0)
	w := newWorld(t, &testHub{answer: keeping}, Options{Bearer: []string{"token-one", "token-two"}, Store: store})
	const one, two = "Authorization: Bearer token-one", "Authorization: Bearer token-two"
	id := w.do("POST", initializeLine("2025-11-25"), one).header.Get("Mcp-Session-Id")
	session := "Mcp-Session-Id: " + id
	for _, e := range store.Unsaved() {
		if text := e.Key + string(e.Record); strings.Contains(text, "token") || strings.Contains(text, id) || strings.Contains(text, "bearer") {
			t.Errorf("the store has %s", text)
		}
	}
	next := w.next(Options{Bearer: []string{"token-two", "token-one"}, Store: store})
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if a := next.do(method, call(1), session, two); a.status != 404 {
			t.Errorf("%s by another: %+v", method, a)
		}
	}
	if a := next.do("POST", call(1), session, one); a.status != 200 {
		t.Errorf("the owner: %+v", a)
	}
	if was, got := w.hub.session(0).peer.Subject, next.hub.session(0).peer.Subject; got != was {
		t.Errorf("it belongs to %s, and did to %s", got, was)
	}
}

// Streams of a process that is gone are not taken for those of this one, whatever the client has seen last.
func TestStreamsAfterARestart(t *testing.T) {
	opts := Options{Store: sessionstore.New("", 0)}
	w := newWorld(t, &testHub{answer: keeping}, opts)
	session := w.greet("2025-11-25")
	get := w.open("GET", "", session)
	w.hub.session(0).await(t, "attach")
	get.want("")
	for n := range 5 {
		w.hub.session(0).listener().Send([]byte(note(n)))
		get.want(note(n))
	}
	get.leave()

	next := w.next(opts)
	back := next.open("GET", "", session, "Last-Event-ID: "+get.lastID)
	next.hub.session(0).await(t, "attach")
	general := next.hub.session(0).listener()
	general.Send([]byte(note(10)))
	back.want(note(10))
	old := back.lastID
	back.leave()
	away(t, general)
	general.Send([]byte(note(11)))
	next.open("GET", "", session, "Last-Event-ID: "+get.lastID).want(note(10), note(11))
	next.open("GET", "", session, "Last-Event-ID: "+old).want(note(11))

	if a := next.do("GET", "", session, "Last-Event-ID: 1-1"); a.status != 400 {
		t.Errorf("a call of the process before: %+v", a)
	}
}

// What a session that goes on is told before its client listens again waits for the client.
func TestWhatIsSaidBeforeTheClientListensAgain(t *testing.T) {
	opts := Options{Store: sessionstore.New("", 0)}
	session := newWorld(t, &testHub{answer: keeping}, opts).greet("2025-11-25")
	w := newWorld(t, &testHub{answer: keeping}, opts)
	if a := w.do("POST", call(1), session); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	general := w.hub.session(0).listener()
	var said []string
	for n := range 100 {
		said = append(said, note(n))
		general.Send([]byte(note(n)))
	}
	get := w.open("GET", "", session)
	get.want("")
	get.want(said...)
}

// Many requests at once for a session that another process has opened make it once.
func TestASessionIsMadeOnce(t *testing.T) {
	opts := Options{Store: sessionstore.New("", 0)}
	session := newWorld(t, &testHub{answer: keeping}, opts).greet("2025-11-25")
	w := newWorld(t, &testHub{answer: keeping}, opts)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			if a := w.do("POST", call(n), session); a.status != 200 {
				t.Errorf("%+v", a)
			}
		})
	}
	all.Wait()
	if n := w.hub.opened(); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// brokenStore has an error in place of the records of others.
type brokenStore struct{ Store }

func (brokenStore) Load(string) ([]byte, error) { return nil, errors.New("the disk does not answer") }

// Only what has certainly ended is called so.
func TestARecordThatCannotBeUsedNow(t *testing.T) {
	store := sessionstore.New("", 0)
	w := newWorld(t, &testHub{answer: keeping}, Options{Store: store})
	session := w.greet("2025-11-25")
	for name, tc := range map[string]struct {
		hub    *testHub
		opts   Options
		status int
	}{
		"broken store": {&testHub{}, Options{Store: brokenStore{store}}, 503},
		"full hub":     {&testHub{full: true}, Options{Store: store}, 503},
		"no room":      {&testHub{}, Options{Store: store, MaxSessions: -1}, 503},
		"no store":     {&testHub{}, Options{}, 404},
	} {
		if a := newWorld(t, tc.hub, tc.opts).do("POST", call(1), session); a.status != tc.status {
			t.Errorf("%s: %+v, want %d", name, a, tc.status)
		}
	}
	w.do("POST", keepNote("unreadable"), session)
	w.settle()
	if a := w.next(Options{Store: store}).do("POST", call(1), session); a.status != 404 {
		t.Errorf("unreadable: %+v", a)
	}
	for _, e := range store.Unsaved() {
		_ = store.Save(e.Key, []byte(`{"format":999}`), e.Until)
	}
	if a := w.next(Options{Store: store}).do("POST", call(1), session); a.status != 404 {
		t.Errorf("of a later version: %+v", a)
	}
}

// A session in use is stored for as long as it would have lived without a restart, however long ago it was opened; one that
// nobody uses is not.
func TestHowLongARecordCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := sessionstore.New("", 0)
		opts := Options{Store: store, SessionIdle: time.Hour}
		f := New(&testHub{answer: keeping}, opts)
		calling, listening, idle := greetDirect(t, f), greetDirect(t, f), greetDirect(t, f)
		ctx, cancel := contextWithCancel(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			serve(f, request(ctx, "GET", "http://localhost/mcp", "", listening))
		}()
		for range 30 {
			time.Sleep(10 * time.Minute)
			serve(f, request(t.Context(), "POST", "http://localhost/mcp", call(1), calling))
		}
		time.Sleep(59 * time.Minute) // killed, and started again
		g := New(&testHub{answer: keeping}, opts)
		for session, want := range map[string]bool{calling: true, listening: true, idle: false} {
			id := strings.TrimPrefix(session, "Mcp-Session-Id: ")
			if _, err := store.Load(keyOf(id)); errors.Is(err, fs.ErrNotExist) == want {
				t.Errorf("%v: %v", want, err)
			}
		}
		cancel()
		<-done
		f.Close()
		g.Close()
	})
}

// failingStore fails to save so often.
type failingStore struct {
	Store
	fails int
}

func (s *failingStore) Save(key string, record []byte, until time.Time) error {
	if s.fails--; s.fails >= 0 {
		return errors.New("the store is away")
	}
	return s.Store.Save(key, record, until)
}

// What could not be stored is stored when the session is used again, a few seconds later.
func TestStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failingStore{Store: sessionstore.New("", 0), fails: 2}
		opts := Options{Store: store}
		f := New(&testHub{answer: keeping}, opts)
		session := greetDirect(t, f)
		id := strings.TrimPrefix(session, "Mcp-Session-Id: ")
		stored := func() bool {
			serve(f, request(t.Context(), "POST", "http://localhost/mcp", call(1), session))
			f.writer.wait()
			_, err := store.Load(keyOf(id))
			return err == nil
		}
		for n, want := range []bool{false, false, true} {
			if got := stored(); got != want {
				t.Errorf("after %v: stored %t", time.Duration(n)*saveAgain, got)
			}
			time.Sleep(saveAgain)
		}
		f.Close()
	})
}

// Nothing is stored for a message that changes nothing.
func TestCallsStoreNothing(t *testing.T) {
	store := &countingStore{Store: sessionstore.New("", 0)}
	w := newWorld(t, &testHub{answer: keeping}, Options{Store: store})
	session := w.greet("2025-11-25")
	for n := range 100 {
		w.do("POST", call(n), session)
	}
	w.settle()
	if store.saves != 1 {
		t.Errorf("stored %d times", store.saves)
	}
}

type countingStore struct {
	Store
	saves int
}

func (c *countingStore) Save(key string, record []byte, until time.Time) error {
	c.saves++
	return c.Store.Save(key, record, until)
}

// A record belongs to its view, too.
func TestAStoredSessionBelongsToItsView(t *testing.T) {
	opts := Options{Store: sessionstore.New("", 0), Views: []View{{Name: "ops"}, {Name: "dev"}}}
	session := "Mcp-Session-Id: " + newWorld(t, &testHub{answer: keeping}, opts).doAt("/mcp/ops", "POST", initializeLine("2025-11-25")).header.Get("Mcp-Session-Id")
	next := newWorld(t, &testHub{answer: keeping}, opts)
	for _, tc := range []struct {
		path   string
		status int
	}{{"/mcp", 404}, {"/mcp/dev", 404}, {"/mcp/ops", 200}} {
		if a := next.doAt(tc.path, "POST", call(1), session); a.status != tc.status {
			t.Errorf("%s: %+v, want %d", tc.path, a, tc.status)
		}
	}
	if got := next.hub.session(0).peer.View; got != "ops" {
		t.Errorf("it sees %q", got)
	}
}
