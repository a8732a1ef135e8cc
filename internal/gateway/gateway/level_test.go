package gateway

import (
	"testing"
	"time"
)

// What a client asks after it has set the log level reaches a server that works on several requests at once after the
// level, and does not wait for ever for one that never confirms it.
func TestCallsWaitForTheLevel(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{mulls: true})
	w.serve(named("a"))
	c := w.legacy().wake()
	p := w.of("a")[0]
	c.level("debug")
	first := c.call("1", "a_do")
	if n := p.count("tools/call"); n != 0 {
		t.Fatal("the call has overtaken the level")
	}
	p.answer(p.open[0], "{}")
	w.settle()
	has(t, "the first call", first, `"id":1,"result"`)

	c.level("info")
	second, third := c.call("2", "a_do"), c.call("3", "a_do")
	c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	w.pass(levelFor - time.Millisecond)
	if n := p.count("tools/call"); n != 1 {
		t.Fatalf("%d calls, and the level not confirmed", n)
	}
	w.pass(time.Millisecond)
	has(t, "the second call", second, `"id":2,"result"`)
	want(t, "the cancelled call", third)
	if n := p.count("tools/call"); n != 2 {
		t.Errorf("the server was called %d times, and one call was cancelled before it heard of it", n)
	}
}

// A process whose client has set a level already is told of that before it is asked anything.
func TestANewProcessLearnsTheLevelFirst(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{mulls: true})
	w.serve(named("a"))
	c := w.legacy().wake()
	c.level("debug")
	w.of("a")[0].end()
	w.settle()
	answer := c.call("1", "a_do")
	p := w.of("a")[0]
	if level, call := p.count("logging/setLevel"), p.count("tools/call"); level != 1 || call != 0 {
		t.Fatalf("told of the level %d times and called %d times", level, call)
	}
	p.answer(p.open[0], "{}")
	w.settle()
	has(t, "the call", answer, `"id":1,"result"`)
}
