package streamhttp

import (
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// withdrawWorld is a world with a session of the version that has arrays, whose answers are never late enough to be events.
func withdrawWorld(t *testing.T, hub *testHub) (w *world, session string, s *testSession) {
	w = newWorld(t, hub, Options{StreamAfter: time.Hour})
	session = w.greet("2025-03-26")
	return w, session, hub.session(0)
}

// post sends a body, and returns where its answer arrives.
func (w *world) post(body, session string) <-chan answer {
	answered := make(chan answer, 1)
	go func() { answered <- w.do("POST", body, session) }()
	return answered
}

// idle reports an error if a request of the first session has no end.
func (w *world) idle() {
	w.t.Helper()
	for _, s := range w.front.table.all() {
		if s.streamStore.running() {
			w.t.Error("a request has no end")
		}
	}
}

// A client that cancels a request waits for nothing: its connection is free again, and nothing counts as in progress.
func TestAWithdrawnRequest(t *testing.T) {
	w, session, s := withdrawWorld(t, &testHub{answer: silent})
	answered := w.post(call(1), session)
	s.await(t, "message "+call(1))
	s.reply(1).Withdraw("1")
	if a := <-answered; a.status != 202 || a.body != "" {
		t.Errorf("%+v", a)
	}
	s.reply(1).Send([]byte(result(1)))
	w.idle()
}

func TestAWithdrawnElement(t *testing.T) {
	w, session, s := withdrawWorld(t, &testHub{answer: silent})
	answered := w.post(arrayOfTwo, session)
	s.await(t, "message "+call(`"b"`))
	s.reply(1).Withdraw("1")
	s.reply(1).Send([]byte(answersOfTwo[1]))
	if a := <-answered; a.status != 200 || a.body != `[`+answersOfTwo[1]+`]` {
		t.Errorf("%+v", a)
	}
	w.idle()
}

// A client that has been told of progress reads events. It resumes a stream that ends without its answer, again and again, and reports
// an error when it cannot: the stream stays open, and is resumed as long. Nothing is in progress by it.
func TestAWithdrawnRequestThatIsAStream(t *testing.T) {
	w, session, s := withdrawWorld(t, &testHub{answer: func(s *testSession, line []byte, reply Stream) {
		if silent(s, line, reply); string(line) == call(1) {
			reply.Send([]byte(note(1)))
		}
	}})
	e := w.open("POST", call(1), session)
	e.want(note(1))
	s.await(t, "message "+call(1))
	s.reply(1).Withdraw("1")
	w.idle()
	s.reply(1).Send([]byte(note(2)))
	s.reply(1).Send([]byte(result(1)))
	again := w.open("GET", "", session, "Last-Event-ID: "+e.lastID)
	e.want("END") // the stream has another reader
	await.Until(t, "the stream counts as endless", func() bool { return w.front.endless.Load() == 1 })
	w.front.drain.begin()
	again.want("END")
}

// So it is at a front that passes the stream on: an upgrade or a stop does not wait for it there either.
func TestAWithdrawnRequestThatIsPassedOn(t *testing.T) {
	all, _ := newEquals(t, 2, quiet, Options{})
	a, b := all[0], all[1]
	session := a.greet("2025-11-25")
	a.do("POST", initialized, session)
	s := a.hub.session(0)
	began := make(chan *events, 1)
	go func() { began <- b.open("POST", call(1), session) }()
	s.await(t, "message "+call(1))
	s.reply(2).Send([]byte(note(1)))
	e := <-began
	e.want("", note(1))
	s.reply(2).Withdraw("1")
	await.Until(t, "the stream counts as endless", func() bool { return b.front.endless.Load() == 1 })
	b.front.drain.begin()
	e.want("END")
}

// What is answered when the session ends is not lost.
func TestHalfAnArrayAtTheEnd(t *testing.T) {
	w, session, s := withdrawWorld(t, &testHub{answer: silent})
	began := make(chan *events, 1)
	go func() { began <- w.open("POST", arrayOfTwo, session) }()
	s.await(t, "message "+call(`"b"`))
	s.reply(1).Send([]byte(answersOfTwo[0]))
	if a := w.do("DELETE", "", session); a.status != 204 {
		t.Errorf("%+v", a)
	}
	(<-began).want(answersOfTwo[0], "END")
}
