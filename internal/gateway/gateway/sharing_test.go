package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
)

func shared(name string) Server {
	s := named(name)
	s.Shared = true
	return s
}

func (c *client) level(level string) {
	c.ask(`{"jsonrpc":"2.0","id":"lv","method":"logging/setLevel","params":{"level":"` + level + `"}}`)
}

// A shared server logs as much as any client wants, and each client gets what it wants.
func TestSharedLevel(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(shared("a"))
	unsettled, loud := w.legacy().wake(), w.legacy()
	procs := w.of("a")
	if len(procs) != 1 {
		t.Fatalf("%d processes", len(procs))
	}
	p := procs[0]
	told := func(want string) {
		t.Helper()
		if m, _ := p.last("logging/setLevel"); m.Params.Level != want {
			t.Errorf("the server logs %q, not %q", m.Params.Level, want)
		}
	}
	unsettled.level("error")
	told("error")
	loud.level("debug")
	told("debug")
	p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
	want(t, "quiet", unsettled.general)
	has(t, "loud", loud.general, "notifications/message")

	w.serve(func() Server { s := shared("a"); s.Digest = "2"; return s }())
	p = w.of("a")[0]
	told("debug") // its successor is told, too
	loud.Close(w.now)
	w.settle()
	told("error")
}

func (c *client) subscribe(verb string) *inbox {
	return c.ask(`{"jsonrpc":"2.0","id":"s","method":"resources/` + verb + `","params":{"uri":"x:1"}}`)
}

// Subscriptions to a shared server are counted.
func TestSharedSubscriptions(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{uris: []string{"x:1", "x:2"}})
	w.serve(shared("a"))
	one, two := w.legacy(), w.legacy()
	one.tools()
	p := w.of("a")[0]
	count := func(subscribed, unsubscribed int) {
		t.Helper()
		if a, b := p.count("resources/subscribe"), p.count("resources/unsubscribe"); a != subscribed || b != unsubscribed {
			t.Errorf("the server was asked to subscribe %d times, and to unsubscribe %d times", a, b)
		}
	}
	update := func(uri string, wantOne, wantTwo int) {
		t.Helper()
		p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"%s"}}`, uri)
		if len(one.general.lines) != wantOne || len(two.general.lines) != wantTwo {
			t.Errorf("%s: %q, %q", uri, one.general.lines, two.general.lines)
		}
		one.general.lines, two.general.lines = nil, nil
	}
	has(t, "one", one.subscribe("subscribe"), `"result":{}`)
	update("x:1", 1, 0)
	has(t, "two", two.subscribe("subscribe"), `"result":{}`)
	count(1, 0)
	update("x:1", 1, 1)
	update("x:2", 0, 0)
	update(`\u0078:1`, 1, 1) // the same, written otherwise
	has(t, "one leaves", one.subscribe("unsubscribe"), `"result":{}`)
	count(1, 0)
	update("x:1", 0, 1)

	// Its successor is asked again, and who is subscribed is told that something may have changed.
	next := shared("a")
	next.Digest = "2"
	w.serve(next)
	p = w.of("a")[0]
	count(1, 0)
	want(t, "one", one.general)
	has(t, "two", two.general, `resources/updated","params":{"uri":"x:1"}`)
	w.serve(changedServer("a", "3")) // now each client has its own
	if m, _ := w.of("a")[1].last("resources/subscribe"); m.Params.URI != "x:1" {
		t.Error("its own process was not asked")
	}
	w.serve(next)
	p = w.of("a")[0]
	count(1, 0)
	two.Close(w.now)
	w.settle()
	count(1, 1)
}

// Between the request and its answer, too, nobody loses what another one gives up.
func TestSharedSubscriptionRace(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{uris: []string{"x:1"}})
	w.serve(shared("a"))
	one, two := w.legacy(), w.legacy()
	one.subscribe("subscribe")
	p := w.of("a")[0]
	in := &inbox{}
	one.Message(w.now, []byte(`{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"x:1"}}`), in)
	two.Message(w.now, []byte(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:1"}}`), in)
	w.settle()
	var last string
	for _, m := range p.told {
		if strings.HasPrefix(m.Method, "resources/") && m.Params.URI != "" {
			last = m.Method
		}
	}
	if last != "resources/subscribe" || len(in.lines) != 2 {
		t.Errorf("the server was last asked to %s; answers %q", last, in.lines)
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}`)
	want(t, "one", one.general)
	has(t, "two", two.general, "updated")
}

// A shared server asks a client only when it is certain whom it means: until then the question is held. One of a call that was
// cancelled is nobody else's.
func TestSharedServerAsks(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"hang", "other"}})
	w.serve(shared("a"))
	one, two := w.legacy(), w.legacy()
	one.tools()
	two.tools()
	p := w.of("a")[0]
	refused := func(what string, id int) {
		t.Helper()
		if m := p.answered(id); !strings.Contains(m, `"error"`) {
			t.Errorf("%s: the server got %q", what, m)
		}
	}
	p.ask(5)
	refused("nobody has called", 5)
	first := one.call("1", "a_hang")
	p.ask(6)
	has(t, "one", first, "elicitation/create")
	second := two.call("1", "a_other")
	p.ask(7)
	want(t, "one, while it is not clear", first)
	want(t, "two, while it is not clear", second)
	last, _ := p.last("tools/call")
	p.answer(last, `"done"`)
	w.settle()
	w.pass(time.Millisecond)
	has(t, "one", first, "elicitation/create")

	one.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	third := two.call("2", "a_other")
	p.ask(8)
	w.pass(time.Minute)
	refused("it may be of the call that was cancelled", 8)
	want(t, "two", third)
}

// A shared process that is configured differently, and finishes its calls, is not left waiting for what nobody decides any more.
func TestSharedServerAsksAtItsEnd(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"hang", "other"}})
	w.serve(shared("a"))
	one, two := w.legacy(), w.legacy()
	one.tools()
	two.tools()
	one.call("1", "a_hang")
	two.call("1", "a_other")
	p := w.of("a")[0]
	p.ask(5)
	if m := p.answered(5); m != "" {
		t.Fatalf("too early: %s", m)
	}
	next := shared("a")
	next.Digest = "2"
	w.serve(next)
	p.ask(6)
	for _, id := range []int{5, 6} {
		if m := p.answered(id); !strings.Contains(m, `"error"`) {
			t.Errorf("question %d: the server got %q", id, m)
		}
	}
}

// The process of a session ends with it; one that is shared goes on, and so do the calls of others there.
func TestLeaving(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"hang"}})
	w.plan("b", plan{tools: []string{"hang"}})
	w.serve(named("a"), shared("b"))
	stays, leaves := w.legacy(), w.legacy()
	var calls []*inbox
	for _, c := range []*client{stays, leaves} {
		c.tools()
		calls = append(calls, c.call("1", "b_hang"), c.call("2", "a_hang"))
	}
	own := w.of("a")[1]
	own.say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
	leaves.Close(w.now)
	w.settle()
	if !own.closed || own.count("notifications/cancelled") != 1 {
		t.Error("its own server was not told, or goes on")
	}
	if m := own.told[len(own.told)-2]; m.Error == nil && own.told[len(own.told)-1].Error == nil {
		t.Errorf("its own server still waits for an answer: %s", m.Raw)
	}
	b := w.of("b")[0]
	if m, _ := b.last("notifications/cancelled"); string(m.Params.RequestID) != string(b.open[1].ID) {
		t.Errorf("cancelled at the shared server: %s", m.Raw)
	}
	for _, m := range b.open {
		b.answer(m, `"fine"`)
	}
	has(t, "who stays", calls[0], "fine")
	want(t, "who left", calls[2])
	if leaves.gw != w.gw || len(w.gw.asks)+len(leaves.calls)+len(leaves.own.links) != 0 {
		t.Error("something of it is kept")
	}
}

func changedServer(name, digest string) Server {
	s := named(name)
	s.Digest = digest
	return s
}

// Servers that are configured as before are not touched; one that is configured differently finishes what it was asked.
func TestReload(t *testing.T) {
	w := newWorld(t, Options{})
	for _, name := range []string{"a", "b", "c"} {
		w.plan(name, plan{tools: []string{"do", "hang"}})
	}
	w.serve(named("a"), named("b"), named("c"))
	c := w.legacy()
	c.tools()
	same, changes, goes := c.call("1", "a_hang"), c.call("2", "b_hang"), c.call("3", "c_hang")
	a, b, gone := w.of("a")[0], w.of("b")[0], w.of("c")[0]
	w.serve(named("a"), changedServer("b", "2"), named("d"))
	if len(w.of("a")) != 1 || a.closed || b.closed || gone.closed {
		t.Error("a process was ended too early, or for nothing")
	}
	has(t, "goes to the new one", c.call("4", "b_do"), `"b"`)
	if b.count("tools/call") != 1 {
		t.Error("the old process got a new call")
	}
	has(t, "is not there any more", c.call("5", "c_do"), "Unknown tool")
	w.pass(time.Second)
	if n := c.general.changes(); n != 1 {
		t.Errorf("told %d times", n)
	}
	if diff := cmp.Diff([]string{"a_do", "a_hang", "b_do", "b_hang", "d_do"}, c.tools()); diff != "" {
		t.Error(diff)
	}
	for _, p := range []*proc{a, b, gone} {
		p.answer(p.open[0], `"late"`)
	}
	w.settle()
	for _, in := range []*inbox{same, changes, goes} {
		has(t, "call in flight", in, "late")
	}
	if a.closed || !b.closed || !gone.closed {
		t.Error("the wrong processes ended")
	}
}

// What waits for a server that is configured differently now is done by its successor, and nobody is told of a list that is
// the same.
func TestReloadOfAServerThatStarts(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(named("a"))
	first := w.legacy()
	first.tools()
	w.plans["a"].mute = true
	c := w.legacy()
	c.tools() // what the first client's process has shown is not known here: it waits
	call := first.call("9", "a_do")
	has(t, "unhurt", call, `"a"`)
	waiting := c.call("1", "a_do")
	w.plans["a"].mute = false
	w.serve(changedServer("a", "2"))
	has(t, "done by the new one", waiting, `"a"`)
	w.pass(time.Minute)
	want(t, "the first client", first.general)
}

// A name stays with its tool while the server is configured differently, and is free when the server is gone.
func TestNamesAfterReload(t *testing.T) {
	w := newWorld(t, Options{Names: catalog.OnCollision})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	names := func(want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, c.tools()); diff != "" {
			t.Error(diff)
		}
	}
	names("do", "b_do")
	w.serve(named("b"), changedServer("a", "2"))
	names("b_do", "do")
	w.serve(named("b"))
	names("b_do")
	w.serve(named("b"), named("c"))
	names("b_do", "do")
}

// A server that comes to its end by itself is started anew by the next call.
func TestServerThatEnds(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"do", "hang"}})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	call := c.call("1", "a_hang")
	w.of("a")[0].end()
	w.settle()
	has(t, "in flight", call, "the server has ended")
	has(t, "next call", c.call("2", "a_do"), `"a"`)
	w.pass(time.Minute)
	want(t, "nothing has changed", c.general)
}

// When the gateway ends, so does every process, once; nobody gets two answers.
func TestClose(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true, tools: []string{"hang"}})
	w.plan("b", plan{modern: true, mute: true})
	w.serve(named("a"), shared("b"))
	c, m := w.legacy(), w.client()
	in := c.call("1", "a_hang")
	listen := m.modern("1", "subscriptions/listen", `"notifications":{},`)
	w.pass(10 * time.Second)
	w.gw.Close(w.now)
	w.settle()
	for i, p := range w.procs {
		if !p.ended {
			t.Errorf("process %d of %s still runs", i, p.name)
		}
	}
	want(t, "call", in)
	if len(listen.lines) != 2 || !strings.Contains(listen.lines[1], `"id":1,"result":{"resultType":"complete"`) {
		t.Errorf("listen: %q", listen.lines)
	}
	if got := fmt.Sprint(w.gw.Deadline()); w.gw.waiting() {
		t.Error(got)
	}
}

// A subscription that the server has not granted yet may be refused: who asks meanwhile gets the server's own answer.
func TestSharedSubscriptionNotGrantedYet(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{uris: []string{"x:1"}})
	w.serve(shared("a"))
	one, two := w.legacy().wake(), w.legacy()
	line := []byte(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:1"}}`)
	answers := []*inbox{{}, {}}
	one.Message(w.now, line, answers[0])
	two.Message(w.now, line, answers[1])
	p := w.of("a")[0]
	w.late = nil // the test answers
	for i, m := range p.told[len(p.told)-2:] {
		p.fail(m, -32602, "no such resource")
		has(t, "refused", answers[i], "no such resource")
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}`)
	want(t, "one", one.general)
	want(t, "two", two.general)
}
