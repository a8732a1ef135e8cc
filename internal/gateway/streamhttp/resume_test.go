package streamhttp

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// resumeWorld has a session with one call that has begun to answer, with what the client has seen of it.
func resumeWorld(t *testing.T, opts Options) (w *world, session string, s *testSession, e *events) {
	t.Helper()
	w = newWorld(t, &testHub{answer: silent}, opts)
	session = w.greet("2025-11-25")
	s = w.hub.session(0)
	started := make(chan *events, 1)
	go func() { started <- w.open("POST", call(1), session) }()
	s.await(t, "message "+call(1))
	s.reply(1).Send([]byte(note(1)))
	e = <-started
	e.want("", note(1))
	return w, session, s, e
}

func TestClientThatLostItsConnectionGetsTheRest(t *testing.T) {
	w, session, s, e := resumeWorld(t, Options{})
	e.leave()
	away(t, s.reply(1))
	s.reply(1).Send([]byte(note(2)))
	back := w.open("GET", "", session, "Last-Event-ID: "+e.lastID)
	back.want(note(2))
	s.reply(1).Send([]byte(note(3)))
	s.reply(1).Send([]byte(result(1)))
	back.want(note(3), result(1), "END")

	// The end may have been lost on the way, too, so it can be fetched again; and from the priming event on.
	w.open("GET", "", session, "Last-Event-ID: "+e.lastID).want(note(2), note(3), result(1), "END")
	prime, _, _ := strings.Cut(e.lastID, "-")
	w.open("GET", "", session, "Last-Event-ID: "+prime+"-0").want(note(1), note(2), note(3), result(1), "END")
}

func TestAnswerThatCameWhileNobodyWasThere(t *testing.T) {
	w, session, s, e := resumeWorld(t, Options{})
	e.leave()
	away(t, s.reply(1))
	s.reply(1).Send([]byte(result(1)))
	w.open("GET", "", session, "Last-Event-ID: "+e.lastID).want(result(1), "END")
}

// A client may come back while its old connection still looks alive.
func TestResumptionTakesOverFromADeadConnection(t *testing.T) {
	w, session, s, e := resumeWorld(t, Options{})
	back := w.open("GET", "", session, "Last-Event-ID: "+e.lastID)
	e.want("END")
	s.reply(1).Send([]byte(result(1)))
	back.want(result(1), "END")
}

func TestTheGetStreamCanBeResumed(t *testing.T) {
	hub := &testHub{}
	w := newWorld(t, hub, Options{})
	session := w.greet("2025-11-25")
	e := w.open("GET", "", session)
	e.want("")
	hub.session(0).await(t, "attach")
	general := hub.session(0).listener()
	general.Send([]byte(note(1)))
	general.Send([]byte(note(2)))
	e.want(note(1))
	seen := e.lastID
	e.want(note(2))
	e.leave()
	away(t, general)
	general.Send([]byte(note(3)))
	w.open("GET", "", session, "Last-Event-ID: "+seen).want(note(2), note(3))
}

// A client opens the GET stream anew, and loses it before it has heard anything. It gets what came since, and nothing twice.
func TestTheGetStreamOpenedAnewRepeatsNothing(t *testing.T) {
	hub := &testHub{}
	w := newWorld(t, hub, Options{})
	session := w.greet("2025-11-25")
	e := w.open("GET", "", session)
	e.want("")
	hub.session(0).await(t, "attach")
	general := hub.session(0).listener()
	general.Send([]byte(note(1)))
	e.want(note(1))
	e.leave()
	away(t, general)
	anew := w.open("GET", "", session)
	anew.want("")
	anew.leave()
	away(t, general)
	general.Send([]byte(note(2)))
	w.open("GET", "", session, "Last-Event-ID: "+anew.lastID).want(note(2))
}

// A request that says nothing gets its stream after a while, so that there is an event id to come back with.
func TestSilentRequestGetsAStream(t *testing.T) {
	hub := &testHub{answer: silent}
	w := newWorld(t, hub, Options{StreamAfter: time.Millisecond, KeepAlive: time.Millisecond})
	session := w.greet("2025-11-25")
	e := w.open("POST", call(1), session)
	e.want("")
	if first := <-e.lines; first != "" {
		t.Fatalf("after the event: %q", first)
	}
	if comment := <-e.lines; comment != ": " {
		t.Errorf("keep-alive: %q", comment)
	}
	e.leave()
	away(t, hub.session(0).reply(1))
	hub.session(0).reply(1).Send([]byte(result(1)))
	w.open("GET", "", session, "Last-Event-ID: "+e.lastID).want(result(1), "END")
}

// A client that left before there was an event to come back with cannot fetch the answer, and nothing is kept for it.
func TestAnswerNobodyCanAskForIsNotKept(t *testing.T) {
	hub := &testHub{answer: silent}
	w := newWorld(t, hub, Options{})
	session := w.greet("2025-11-25")
	left := make(chan struct{})
	r := request(t.Context(), "POST", w.url+"/mcp", call(1), session)
	ctx, cancel := contextWithCancel(t)
	go func() {
		defer close(left)
		if resp, err := w.client.Do(r.WithContext(ctx)); err == nil {
			resp.Body.Close()
		}
	}()
	s := hub.session(0)
	s.await(t, "message "+call(1))
	cancel()
	<-left
	away(t, s.reply(1))
	s.reply(1).Send([]byte(strings.Replace(result(1), "{}", `{"x":"`+strings.Repeat("x", 1000)+`"}`, 1)))
	for _, one := range w.front.table.all() {
		if one.streamStore.size != 0 || len(one.streamStore.kept) != 0 || one.streamStore.running() {
			t.Errorf("kept: %d bytes, %d streams; running: %v", one.streamStore.size, len(one.streamStore.kept), one.streamStore.running())
		}
	}
}

// Whoever reads a stream in pieces, with any connections lost in between, sees every message once and in order, as long as
// the store is large enough.
func TestStreamIsSeenOnceAndInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sh := &streamStore{maxQueue: 1 << 20, maxStore: 1 << 20}
		s, reader := sh.newStream(1, nil)
		s.startKeeping()
		sent, seen := 0, uint64(0)
		connected := true
		read := func() {
			b := s.take(reader)
			if b.taken {
				t.Fatal("the stream was taken away")
			}
			for i, line := range b.lines {
				if n := b.first + uint64(i); n != seen+1 || string(line) != note(int(n)) {
					t.Fatalf("message %d is %s, after %d", n, line, seen)
				}
				seen++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(*rapid.T) { sent++; s.Send([]byte(note(sent))) },
			"read": func(*rapid.T) {
				if connected {
					read()
				}
			},
			"lose": func(*rapid.T) {
				if connected {
					s.left(reader)
				}
				connected = false
			},
			"lose what was written": func(t *rapid.T) {
				if connected && seen > 0 {
					seen -= rapid.Uint64Range(0, seen).Draw(t, "lost")
					s.left(reader)
					connected = false
				}
			},
			"come back": func(*rapid.T) { reader, connected = s.from(seen), true },
		})
		reader = s.from(seen)
		read()
		if seen != uint64(sent) {
			t.Fatalf("seen %d of %d", seen, sent)
		}
	})
}

// However much is sent, a session keeps no more than its bound and one message a stream, and the newest is among it.
func TestStoreIsBounded(t *testing.T) {
	const most = 2000
	sh := &streamStore{maxQueue: 1 << 20, maxStore: most}
	for i := range 200 {
		s, first := sh.newStream(1, nil)
		s.startKeeping()
		s.left(first)
		for n := range 50 {
			s.Send([]byte(note(n)))
		}
		s.Send([]byte(result(i)))
		total := 0
		for _, k := range sh.kept {
			total += sizeOf(k.log)
		}
		if total != sh.size || total > most || len(sh.kept) > maxKept {
			t.Fatalf("after %d streams: %d bytes counted as %d, in %d streams", i, total, sh.size, len(sh.kept))
		}
		back := s.from(0)
		b := s.take(back)
		if last := string(b.lines[len(b.lines)-1]); last != result(i) || !b.ended {
			t.Fatalf("the newest is %s", last)
		}
		s.left(back)
	}
	if sh.running() {
		t.Error("requests that were answered count as running")
	}
}

func TestClientThatDoesNotReadIsCut(t *testing.T) {
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprintf("resumable %v", keep), func(t *testing.T) {
			sh := &streamStore{maxQueue: 100, maxStore: 1000}
			s, first := sh.newStream(1, nil)
			if keep {
				s.startKeeping()
			}
			s.Send([]byte(note(1)))
			s.Send([]byte(strings.Repeat("x", 200))) // one message is taken, however long, and behind a short one too
			if b := s.take(first); b.taken || len(b.lines) != 2 {
				t.Fatalf("one long message: %+v", b)
			}
			for n := range 10 {
				s.Send([]byte(note(n)))
			}
			if b := s.take(first); !b.taken {
				t.Fatal("it still has the stream")
			}
			s.left(first)
			s.Send([]byte(result(1)))
			if b := s.take(s.resume()); keep != (len(b.lines) > 0) {
				t.Errorf("for whoever comes back there is %q", b.lines)
			}
			if sh.running() {
				t.Error("the request counts as running")
			}
		})
	}
}

// Two connections wait for one stream, the old one not knowing yet that it is replaced: each is woken for itself.
func TestReplacedReaderAndTheNewOneAreBothWoken(t *testing.T) {
	sh := &streamStore{maxQueue: 1000, maxStore: 1000}
	s, old := sh.newStream(1, nil)
	s.startKeeping()
	fresh := s.resume()
	s.Send([]byte(note(1)))
	for name, r := range map[string]wake{"the replaced": old, "the new": fresh} {
		select {
		case <-r:
		default:
			t.Errorf("%s reader sleeps on", name)
		}
	}
	if !s.take(old).taken || len(s.take(fresh).lines) != 1 {
		t.Error("the message went to the wrong one")
	}
	if s.left(old); s.Abandoned() {
		t.Error("the replaced reader's leaving counts as the client's")
	}
}
