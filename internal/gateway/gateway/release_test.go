package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A session whose client is away gives its processes back, and has them again with the next call: with its level, its
// subscriptions and its lists.
func TestAwaySessionGivesItsProcessesBack(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"do", "hang"}, uris: []string{"x:1"}})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	tools := c.tools()
	c.level("warning")
	c.subscribe("subscribe")
	call := c.call("1", "a_hang")
	c.Release(w.now)
	w.settle()
	if n := len(w.of("a")); n != 1 {
		t.Errorf("%d processes while a call runs", n)
	}
	p := w.of("a")[0]
	p.answer(p.open[0], `"done"`)
	w.settle()
	has(t, "call", call, "done")
	for range 3 {
		c.Release(w.now)
		w.settle()
	}
	if n := len(w.of("a")) + len(w.of("b")); n != 0 {
		t.Errorf("%d processes of a client that is away", n)
	}
	w.pass(10 * time.Minute)
	w.plans["a"].slow = true // the list is remembered
	if diff := cmp.Diff(tools, c.tools()); diff != "" {
		t.Error(diff)
	}
	has(t, "call", c.call("2", "a_do"), `"text":"a"`)
	p = w.of("a")[0]
	if m, _ := p.last("logging/setLevel"); m.Params.Level != "warning" {
		t.Errorf("the level is %q", m.Params.Level)
	}
	if m, _ := p.last("resources/subscribe"); m.Params.URI != "x:1" {
		t.Errorf("the subscription is to %q", m.Params.URI)
	}
	c.Close(w.now)
	w.settle()
}

// Processes of sessions have a bound. Beyond it a client is told why, others go on, and it gets its turn.
func TestProcessesHaveABound(t *testing.T) {
	w := newWorld(t, Options{MaxProcesses: 2})
	w.plan("s", plan{modern: true})
	w.serve(named("a"), named("b"), shared("s"))
	first := w.legacy()
	first.tools()
	var knocks []*client
	for range 50 {
		c := w.legacy()
		c.tools()
		knocks = append(knocks, c)
	}
	if n := len(w.of("a")) + len(w.of("b")); n != 2 {
		t.Errorf("%d processes", n)
	}
	has(t, "beyond", knocks[7].call("1", "a_do"), "the gateway keeps 2 processes for its sessions, the maximum")
	has(t, "shared", knocks[7].call("2", "s_do"), `"text":"s"`)
	has(t, "the first", first.call("1", "b_do"), `"text":"b"`)
	first.Close(w.now)
	w.settle()
	w.pass(time.Minute)
	n := 0
	for i, c := range knocks {
		for _, answer := range c.call(fmt.Sprint(i+10), "a_do").lines {
			n += strings.Count(answer, `"text":"a"`)
		}
	}
	if n == 0 {
		t.Error("nobody got the places that are free")
	}
	if s := w.gw.servers[0]; s.standing != usable {
		t.Errorf("the bound is taken for a failure of the server: %v", s.standing)
	}
}

// leaving is a stream whose client has gone.
type leaving struct {
	inbox
	gone bool
}

func (l *leaving) Abandoned() bool { return l.gone }

// Requests in flight have a bound. Those whose client has left make room.
func TestRequestsInFlightHaveABound(t *testing.T) {
	big := strings.Repeat("x", 8<<20)
	for name, test := range map[string]struct{ pad, fit int }{"bytes": {8 << 20, 7}, "count": {0, callsMost}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.plan("a", plan{tools: []string{"hang"}})
			w.serve(named("a"))
			c := w.legacy()
			c.tools()
			var all []*leaving
			call := func(i int) *leaving {
				in := &leaving{}
				all = append(all, in)
				c.Message(w.now, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a_hang","arguments":{"a":%q}}}`, i, big[:test.pad]), in)
				w.settle()
				return in
			}
			for i := range test.fit {
				want(t, "a call that fits", &call(i).inbox)
			}
			has(t, "one more", &call(10_000).inbox, "no room for another")
			all[1].gone, all[2].gone = true, true
			want(t, "in the place of one whose client has left", &call(10_001).inbox)
			p := w.of("a")[0]
			if n := p.count("notifications/cancelled"); n != 1 {
				t.Errorf("%d requests were cancelled", n)
			}
			want(t, "in the place of the other", &call(10_002).inbox)
			has(t, "now it is full again", &call(10_003).inbox, "no room for another")
			for _, m := range p.open {
				p.answer(m, "1")
			}
			w.settle()
			if c.held != 0 || len(c.calls) != 0 {
				t.Errorf("%d bytes of %d calls are left", c.held, len(c.calls))
			}
		})
	}
}

// What a server asks, and what a client subscribes to, has a bound.
func TestQuestionsAndSubscriptionsHaveABound(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{uris: []string{"x:1"}})
	w.serve(named("a"))
	c := w.legacy().wake()
	p := w.of("a")[0]
	for i := range asksMost + 50 {
		p.say(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i)
	}
	w.settle()
	if n := len(c.general.lines); n != asksMost {
		t.Errorf("the client was asked %d times", n)
	}
	refused := 0
	for _, m := range p.told {
		if m.Error != nil && strings.Contains(m.Raw, "wait for the client's answers already") {
			refused++
		}
	}
	if refused != 50 {
		t.Errorf("%d questions were refused", refused)
	}
	var last *inbox
	for i := range 1001 {
		last = c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"x:%d"}}`, i+1, i))
	}
	has(t, "one more", last, "subscribed to 1000 resources, the maximum")
}
