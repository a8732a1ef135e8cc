package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// plainly is a world with one server that clients see as it is.
func plainly(t failer, p plan) *world {
	w := newWorld(t, Options{Plain: true, PoolIdle: time.Minute})
	w.plan("a", p)
	w.serve(shared("a"))
	return w
}

const canElicit = `{"elicitation":{}}`

func (p *proc) ask(id int) {
	p.say(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"n":%d}}`, id, id)
	p.world.settle()
}

// answered is what the process was told to its question.
func (p *proc) answered(id int) string {
	for _, m := range p.told {
		if m.Method == "" && string(m.ID) == fmt.Sprint(id) {
			return m.Raw
		}
	}
	return ""
}

// Clients that can do the same have one process, which is told the truth about them, and see what it says of itself.
func TestPlainHandshake(t *testing.T) {
	w := plainly(t, plan{about: "as it is"})
	in := w.client().ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c"}}}`)
	has(t, "the first", in, "as it is")
	w.can(canElicit)
	if n := len(w.of("a")); n != 1 {
		t.Errorf("%d processes for two clients that can do the same", n)
	}
	w.can(`{}`)
	if n := len(w.of("a")); n != 2 {
		t.Errorf("%d processes for clients that can do different things, not 2", n)
	}
	if m, _ := w.of("a")[0].last("initialize"); !strings.Contains(m.Raw, `"elicitation"`) {
		t.Errorf("the server was told %s", m.Raw)
	}
}

// A process whose last client has left ends after a while; one that comes meanwhile keeps it.
func TestPlainIdle(t *testing.T) {
	w := plainly(t, plan{})
	c := w.can(canElicit)
	p := w.of("a")[0]
	c.Close(w.now)
	w.pass(30 * time.Second)
	c = w.can(canElicit)
	w.pass(2 * time.Minute)
	if p.closed || len(w.procs) != 1 {
		t.Fatal("it ended while it was in use, or another was started")
	}
	c.Close(w.now)
	w.pass(2 * time.Minute)
	if !p.closed {
		t.Error("it goes on without clients")
	}
}

// Changed lists and subscriptions reach those whom they concern.
func TestPlainNotifications(t *testing.T) {
	w := plainly(t, plan{})
	one, two := w.can(canElicit), w.can(canElicit)
	other := w.can(`{}`)
	p := w.of("a")[0]
	p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.settle()
	has(t, "one", one.general, "list_changed")
	has(t, "two", two.general, "list_changed")
	want(t, "of another process", other.general)
	one.subscribe("subscribe")
	other.subscribe("subscribe")
	if p.count("resources/subscribe") != 1 || w.of("a")[1].count("resources/subscribe") != 1 {
		t.Error("each process is to have a subscription")
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}`)
	w.settle()
	want(t, "of another process", other.general)
}

// A question is held until the calls of one client are left that may have asked it.
func TestPlainQuestionIsHeld(t *testing.T) {
	w := plainly(t, plan{})
	one, two := w.can(canElicit), w.can(canElicit)
	p := w.of("a")[0]
	first, second := one.call("1", "hang"), two.call("1", "other")
	p.ask(5)
	want(t, "one, while it is not clear", first)
	want(t, "two, while it is not clear", second)
	p.answer(p.open[1], `{"done":2}`)
	w.settle()
	w.pass(time.Millisecond)
	has(t, "one", first, "elicitation/create")
	if len(second.lines) != 1 {
		t.Errorf("two got %q", second.lines)
	}
	// From now on calls of that tool go one at a time, others do not wait.
	third, fourth := two.call("2", "hang"), two.call("3", "other")
	if n := p.count("tools/call"); n != 3 {
		t.Errorf("%d calls are at the server, not 3", n)
	}
	p.answer(p.open[0], `{"done":1}`)
	w.settle()
	w.pass(time.Millisecond)
	if n := p.count("tools/call"); n != 4 {
		t.Errorf("the call whose turn it is was not sent: %d", n)
	}
	p.ask(6)
	want(t, "two", third)
	has(t, "two", fourth, "elicitation/create") // all calls there are its: it comes with the latest
}

// What cannot become clear is refused: as many questions as calls that may have asked, or nobody left in time.
func TestPlainQuestionIsRefused(t *testing.T) {
	w := plainly(t, plan{})
	one, two := w.can(canElicit), w.can(canElicit)
	p := w.of("a")[0]
	first, second := one.call("1", "hang"), two.call("1", "hang")
	p.ask(5)
	p.ask(6)
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`) // names no question
	if m := p.answered(6); !strings.Contains(m, "error") {
		t.Errorf("the last of two questions of two calls: %q", m)
	}
	w.pass(31 * time.Second)
	if m := p.answered(5); !strings.Contains(m, "error") {
		t.Errorf("a question that stays unclear: %q", m)
	}
	want(t, "one", first)
	want(t, "two", second)
}

// A call that its client has withdrawn may still ask: nobody else gets that.
func TestPlainQuestionOfTheGone(t *testing.T) {
	w := plainly(t, plan{})
	one, two := w.can(canElicit), w.can(canElicit)
	p := w.of("a")[0]
	one.call("1", "hang")
	one.Close(w.now)
	w.settle()
	p.ask(5)
	if m := p.answered(5); !strings.Contains(m, "does not wait for this any more") {
		t.Errorf("a question of who has left: %q", m)
	}
	want(t, "two", two.general)
	w.pass(3 * time.Second)
	p.ask(6) // it belongs to no call, and there is one client
	has(t, "two", two.general, "elicitation/create")
}

// A question that was not clear when the client left whose call asked it is nobody else's, however long its server takes to stop.
func TestPlainQuestionOfWhoLeaves(t *testing.T) {
	w := plainly(t, plan{})
	one, two := w.can(canElicit), w.can(canElicit)
	p := w.of("a")[0]
	one.call("1", "hang")
	call := two.call("1", "other")
	p.ask(5)
	one.Close(w.now)
	w.settle()
	w.pass(3 * time.Second)
	want(t, "two", call)
	w.pass(30 * time.Second)
	want(t, "two", call)
	if m := p.answered(5); !strings.Contains(m, "error") {
		t.Errorf("the server was answered %q", m)
	}
}

const canRoots = `{"roots":{"listChanged":true}}`

// tellRoots answers the question for roots that the client was asked last.
func (c *client) tell(roots string) {
	c.world.t.Helper()
	for i := len(c.general.lines) - 1; i >= 0; i-- {
		if m := parse(c.world.t, c.general.lines[i]); m.Method == "roots/list" {
			c.general.lines = nil
			c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":%q}]}}`, m.ID, roots))
			return
		}
	}
	c.world.t.Fatalf("it was not asked for roots: %q", c.general.lines)
}

// The server's first question for roots is about the client whose call asks it, whoever answers first. Who has the same roots stays.
func TestRootsOfTheCaller(t *testing.T) {
	w := plainly(t, plan{})
	one, two, three := w.can(canRoots), w.can(canRoots), w.can(canRoots)
	p := w.of("a")[0]
	call := one.call("1", "hang")
	p.say(`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)
	w.settle()
	three.tell("file:///a")
	two.tell("file:///b")
	if m := p.answered(9); m != "" {
		t.Errorf("the server was told the roots of somebody who has not called: %s", m)
	}
	one.tell("file:///a")
	if m := p.answered(9); !strings.Contains(m, "file:///a") {
		t.Errorf("the server was told %q", m)
	}
	p.answer(p.open[0], `"done"`)
	w.settle()
	has(t, "the call", call, "done")
	for _, c := range []*client{two, three} {
		c.call("2", "hang")
	}
	if all := w.of("a"); len(all) != 2 || p.count("tools/call") != 2 || all[1].count("tools/call") != 1 {
		t.Errorf("%d processes, of which the first has had %d calls", len(all), p.count("tools/call"))
	}
}

// While calls of clients with different roots run, the server is told none until it is clear which of them asks.
func TestRootsOfSeveralCallers(t *testing.T) {
	w := plainly(t, plan{})
	one, two := w.can(canRoots), w.can(canRoots)
	p := w.of("a")[0]
	one.call("1", "hang")
	two.call("1", "hang")
	p.say(`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)
	w.settle()
	two.tell("file:///b")
	one.tell("file:///a")
	p.answer(p.open[1], `"done"`) // the second one's call: it is the other one that asks
	w.settle()
	w.pass(time.Millisecond)
	if m := p.answered(9); !strings.Contains(m, "file:///a") {
		t.Errorf("the server was told %q", m)
	}
}

// Each distinct set of roots has a process of its own, once the server has asked for them.
func TestPlainRoots(t *testing.T) {
	w := plainly(t, plan{})
	one, two := w.can(canRoots), w.can(canRoots)
	p := w.of("a")[0]
	p.say(`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)
	w.settle()
	one.tell("file:///here")
	if m := p.answered(9); !strings.Contains(m, "file:///here") {
		t.Fatalf("the server was told %q", m)
	}
	waits := two.call("1", "do")
	if len(waits.lines) != 0 {
		t.Errorf("a call went before it was clear which process is its client's: %q", waits.lines)
	}
	two.tell("file:///there")
	has(t, "two", waits, "result")
	if n := len(w.of("a")); n != 2 {
		t.Fatalf("%d processes for two sets of roots", n)
	}
	three := w.can(canRoots)
	three.tell("file:///here")
	has(t, "three", three.call("1", "do"), "result")
	if n := len(w.of("a")); n != 2 || p.count("tools/call") != 1 {
		t.Errorf("%d processes; who has the same roots is to share: %d calls", n, p.count("tools/call"))
	}
	// The other process asks, too, and is told what its clients have.
	q := w.of("a")[1]
	q.say(`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)
	w.settle()
	if m := q.answered(9); !strings.Contains(m, "file:///there") {
		t.Errorf("the other process was told %q", m)
	}
	// Who has other roots from now on goes where those are.
	three.ask(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	three.tell("file:///there")
	three.call("2", "do")
	if q.count("tools/call") != 2 {
		t.Errorf("the call went to the process of its old roots: %d", q.count("tools/call"))
	}
	// A client that does not say shares with nobody.
	mute := w.can(canRoots)
	late := mute.call("1", "do")
	w.pass(6 * time.Second)
	has(t, "who does not tell", late, "result")
	if n := len(w.of("a")); n != 3 {
		t.Errorf("%d processes, not 3", n)
	}
}

// A subscription goes with its client to the process of the client's roots, and the client is told that it may have missed a change.
func TestPlainSubscriptionsMove(t *testing.T) {
	w := plainly(t, plan{})
	one, two, three := w.can(canRoots), w.can(canRoots), w.can(canRoots)
	two.subscribe("subscribe")
	three.subscribe("subscribe")
	w.of("a")[0].say(`{"jsonrpc":"2.0","id":9,"method":"roots/list"}`)
	w.settle()
	one.tell("file:///here")
	for name, c := range map[string]*client{"two": two, "three": three} {
		c.tell("file:///there")
		has(t, name, c.general, `resources/updated","params":{"uri":"x:1"}`)
	}
	if n := w.of("a")[1].count("resources/subscribe"); n != 2 {
		t.Errorf("the other process was asked to subscribe %d times", n)
	}
}

// A server with tasks shows each client those of all: it is not shared.
func TestPlainTasks(t *testing.T) {
	w := plainly(t, plan{caps: `{"tools":{},"tasks":{"list":{}}}`})
	for range 3 {
		has(t, "it", w.can(`{}`).call("1", "do"), "result")
	}
	if n := len(w.of("a")); n != 3 {
		t.Errorf("%d processes for three clients", n)
	}
}
