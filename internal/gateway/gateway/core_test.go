package gateway

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// want fails the test unless the inbox has exactly these lines.
func want(t *testing.T, what string, in *inbox, lines ...string) {
	t.Helper()
	if diff := cmp.Diff(lines, in.lines); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
	in.lines = nil
}

// has fails the test unless the inbox has one line, with the text in it.
func has(t *testing.T, what string, in *inbox, text string) {
	t.Helper()
	if len(in.lines) != 1 || !strings.Contains(in.lines[0], text) {
		t.Errorf("%s: no single line with %q: %q", what, text, in.lines)
	}
	in.lines = nil
}

func TestNames(t *testing.T) {
	tests := []struct {
		name    string
		names   catalog.Names
		servers []catalog.Server
		want    []string
	}{
		{"always", "", []catalog.Server{{Name: "a"}, {Name: "b"}}, []string{"a_do", "a_sleep", "b_do", "b_sleep"}},
		{"collision", catalog.OnCollision, []catalog.Server{{Name: "a"}, {Name: "b"}}, []string{"do", "sleep", "b_do", "b_sleep"}},
		{"prefix", "", []catalog.Server{{Name: "a", Prefix: "x"}}, []string{"x_do", "x_sleep"}},
		{"allow", "", []catalog.Server{{Name: "a", Filter: catalog.Filter{Allow: []string{"d*"}}}}, []string{"a_do"}},
		{"deny wins", "", []catalog.Server{{Name: "a", Filter: catalog.Filter{Allow: []string{"*"}, Deny: []string{"do"}}}}, []string{"a_sleep"}},
		{"rename", "", []catalog.Server{{Name: "a", Rename: map[string]string{"do": "act"}}}, []string{"a_act", "a_sleep"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, Options{Names: test.names})
			var servers []Server
			for _, c := range test.servers {
				w.plan(c.Name, plan{tools: []string{"do", "sleep"}})
				servers = append(servers, Server{Catalog: c})
			}
			w.serve(servers...)
			c := w.legacy()
			if diff := cmp.Diff(test.want, c.tools()); diff != "" {
				t.Error(diff)
			}
			last := servers[len(servers)-1].Catalog.Name
			for i, name := range test.want {
				c.call(strconv.Itoa(i+1), name)
			}
			if m, ok := w.of(last)[0].last("tools/call"); !ok || m.Params.Name != "sleep" && m.Params.Name != "do" {
				t.Errorf("the server was called %q by a name it has not given", m.Raw)
			}
		})
	}
}

// A name that was filtered out cannot be called either.
func TestDeniedToolCannotBeCalled(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(Server{Catalog: catalog.Server{Name: "a", Filter: catalog.Filter{Deny: []string{"do"}}}})
	c := w.legacy()
	c.tools()
	has(t, "call", c.call("1", "a_do"), "Unknown tool: a_do")
	if n := w.of("a")[0].count("tools/call"); n != 0 {
		t.Errorf("the server was called %d times", n)
	}
}

// An id comes back byte for byte, and what else is in a message reaches the server as it was written.
func TestBytesStay(t *testing.T) {
	for _, sync := range []bool{false, true} {
		w := newWorld(t, Options{})
		w.plan("a", plan{sync: sync})
		w.serve(named("a"))
		c := w.legacy()
		c.tools()
		for _, id := range []string{`1`, `1.0`, `1e0`, `"1"`, `"\u0031"`, `9007199254740993`, `-1`, `1.5`, `true`, `""`} {
			want(t, id, c.call(id, "a_do"), `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"a"}]}}`)
		}
		c.ask(`{ "x":1, "params":{"arguments":{"n":9007199254740993,"t":"<\u00e9>"},"name" : "a_do"},"method":"tools\/call","jsonrpc":"2.0","id":7}`)
		m, _ := w.of("a")[0].last("tools/call")
		wanted := `{ "x":1, "params":{"arguments":{"n":9007199254740993,"t":"<\u00e9>"},"name" : "do"},"method":"tools\/call","jsonrpc":"2.0","id":` + string(m.ID) + `}`
		if diff := cmp.Diff(wanted, m.Raw); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDuplicateID(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"hang"}})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	first := c.call("1", "a_hang")
	has(t, "second", c.call("1", "a_hang"), `"code":-32600`)
	p := w.of("a")[0]
	p.answer(p.open[0], `"fine"`)
	want(t, "first", first, `{"jsonrpc":"2.0","id":1,"result":"fine"}`)
	p.answer(p.open[0], `"again"`)
	want(t, "doubled answer", first)
}

// What two clients of the legacy era ask, are asked and are told is never the other's.
func TestLegacyClientsAreApart(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"hang"}, uris: []string{"x:1"}})
	w.serve(named("a"))
	var clients [2]*client
	var calls [2]*inbox
	for i := range clients {
		clients[i] = w.legacy()
		clients[i].tools()
		calls[i] = clients[i].ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_hang","_meta":{"progressToken":"p"}}}`)
		has(t, "subscribe", clients[i].ask(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"x:1"}}`), `"result"`)
	}
	procs := w.of("a")
	if len(procs) != 2 {
		t.Fatalf("%d processes", len(procs))
	}
	for i, p := range procs {
		call := p.open[0]
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, call.Params.Meta["progressToken"])
		want(t, "progress", calls[i], `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`)
		p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
		has(t, "log", calls[i], "notifications/message")
		p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1"}}`)
		has(t, "updated", clients[i].general, "x:1")
		// Both servers number their requests alike, and both use the same progress token.
		p.say(`{"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"?","_meta":{"progressToken":1}}}`)
	}
	for i, p := range procs {
		asked := parse(t, calls[i].lines[0])
		calls[i].lines = nil
		clients[1-i].ask(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"stranger":true}}`)
		clients[i].ask(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(asked.Params.Meta["progressToken"]) + `,"progress":1}}`)
		if m, _ := p.last("notifications/progress"); string(m.Params.ProgressToken) != "1" {
			t.Errorf("the server got progress %s", m.Raw)
		}
		clients[i].ask(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{"mine":true}}`)
		if m := p.told[len(p.told)-1]; m.Raw != `{"jsonrpc":"2.0","id":0,"result":{"mine":true}}` {
			t.Errorf("the server got %s", m.Raw)
		}
		clients[i].ask(`{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"error"}}`)
		if procs[1].count("logging/setLevel") != i {
			t.Error("the level of one client reached the other's server")
		}
		p.answer(p.open[0], `"done"`)
		want(t, "answer", calls[i], `{"jsonrpc":"2.0","id":1,"result":"done"}`)
		if i == 0 && len(calls[1].lines) != 1 {
			t.Errorf("the other client got %q", calls[1].lines)
		}
	}
	for _, c := range clients {
		want(t, "general", c.general)
	}
}

// A server's word that it needs no answer any more, and the end of the server, close the client's dialogue.
func TestServerWithdrawsRequest(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"hang"}})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	call := c.call("1", "a_hang")
	p := w.of("a")[0]
	p.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`)
	if len(call.lines) != 2 || string(parse(t, call.lines[1]).Params.RequestID) != string(parse(t, call.lines[0]).ID) {
		t.Errorf("%q", call.lines)
	}
	p.say(`{"jsonrpc":"2.0","id":"r","method":"elicitation/create","params":{}}`)
	asked := parse(t, call.lines[2])
	p.end()
	w.settle()
	if len(call.lines) != 4 || !strings.Contains(call.lines[3], "the server has ended") {
		t.Errorf("%q", call.lines)
	}
	has(t, "withdrawn", c.general, string(asked.ID))
	c.ask(`{"jsonrpc":"2.0","id":` + string(asked.ID) + `,"result":{}}`) // reaches nobody: Say would complain
}

// A client's answer that cannot be read is an answer nevertheless: the server does not wait for ever.
func TestUnreadableAnswer(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(named("a"))
	c := w.legacy().wake()
	p := w.of("a")[0]
	for i, answer := range []func(id string){
		func(id string) { c.ask(`{"jsonrpc":"2.0","id":` + id + `,"result":"\ud800"}`) },
		func(id string) {
			head := `{"jsonrpc":"2.0","id":` + id + `,"result":"`
			c.Oversize(w.now, []byte(head), []byte(`"}`), 1<<30, c.general)
		},
	} {
		p.say(`{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{}}`, i)
		asked := parse(t, c.general.lines[0])
		c.general.lines = nil
		answer(string(asked.ID))
		if m := p.told[len(p.told)-1]; m.Error == nil {
			t.Errorf("the server got %s", m.Raw)
		}
		want(t, "client", c.general)
	}
}

func TestCancelInEveryState(t *testing.T) {
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`
	tests := []struct {
		name    string
		plan    plan
		release func(w *world, p *proc)
		told    int // cancellations that reach the server
	}{
		{"waiting for lists", plan{slow: true}, func(w *world, p *proc) { p.listTools(p.open[0]) }, 0},
		{"waiting for the handshake", plan{mute: true, tools: []string{"hang"}}, func(w *world, p *proc) {
			p.plan.mute = false
			m, _ := p.last("initialize")
			p.greet(m)
		}, 0},
		{"in flight", plan{tools: []string{"hang"}}, func(w *world, p *proc) {
			m, _ := p.last("tools/call")
			p.answer(m, "{}")
		}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.plan("a", test.plan)
			w.serve(named("a"))
			c := w.legacy()
			in := c.call("1", "a_hang")
			c.ask(cancel)
			again := c.call("1", "a_hang") // the id is free
			p := w.of("a")[0]
			before := p.count("tools/call")
			test.release(w, p)
			w.settle()
			want(t, "cancelled", in)
			if n := p.count("notifications/cancelled"); n != test.told {
				t.Errorf("%d cancellations", n)
			}
			if test.told == 0 && p.count("tools/call")-before > 1 {
				t.Error("the cancelled call was made")
			}
			w.pass(time.Minute)
			if len(again.lines) > 1 {
				t.Errorf("two answers: %q", again.lines)
			}
		})
	}
}

func TestUnknownToolWaitsForLists(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{})
	w.plan("b", plan{slow: true})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	later, never := c.call("1", "b_do"), c.call("2", "c_do")
	want(t, "early", later)
	has(t, "of a server that is there", c.call("3", "a_do"), `"text":"a"`)
	p := w.of("b")[0]
	p.listTools(p.open[0])
	w.settle()
	has(t, "known now", later, `"text":"b"`)
	has(t, "unknown for good", never, "Unknown tool: c_do")
}

// One server that says nothing delays nobody beyond ListWait; when it speaks, clients are told once.
func TestSlowServer(t *testing.T) {
	for name, slow := range map[string]plan{"lists": {slow: true}, "handshake": {mute: true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{ListWait: 3 * time.Second})
			w.plan("a", plan{})
			w.plan("b", slow)
			w.serve(named("a"), named("b"))
			c := w.legacy()
			list := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			unknown := c.call("2", "b_do")
			w.pass(2900 * time.Millisecond)
			want(t, "too early", list)
			w.pass(200 * time.Millisecond)
			if diff := cmp.Diff([]string{"a_do"}, toolsOf(t, list)); diff != "" {
				t.Error(diff)
			}
			missing := map[string]string{
				"lists":     "is used without a list: tools/list: not answered within 3s)",
				"handshake": "cannot be used: it has not answered the handshake within 3s; it is tried again by itself, and nothing was delivered to it)",
			}[name]
			has(t, "unknown", unknown, "Unknown tool: b_do (server b "+missing)
			if got := c.tools(); len(got) != 1 {
				t.Errorf("the next list waits again: %v", got)
			}
			p := w.of("b")[0]
			if slow.mute {
				m, _ := p.last("initialize")
				p.plan.mute = false
				p.greet(m)
			} else {
				p.plan.slow = false
				p.listTools(p.open[0])
			}
			w.settle()
			w.pass(time.Second)
			if n := c.general.changes(); n != 1 {
				t.Errorf("told %d times", n)
			}
			if diff := cmp.Diff([]string{"a_do", "b_do"}, c.tools()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A process is greeted, told that it was, and asked for its tools, in this order (GW-1).
func TestEachProcessIsGreetedAndAskedForItsTools(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{})
	w.plan("b", plan{})
	w.serve(named("a"), named("b"))
	w.legacy().tools()
	for _, name := range []string{"a", "b"} {
		var told []string
		for _, m := range w.of(name)[0].told {
			told = append(told, m.Method)
		}
		if len(told) < 3 || !slices.Equal(told[:3], []string{"initialize", "notifications/initialized", "tools/list"}) {
			t.Errorf("%s was told %v", name, told)
		}
	}
}

// Why a server cannot be used is told to whoever calls it, at once; it is tried again, and then it is there.
func TestFailedHandshake(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{})
	w.plan("b", plan{refuse: 2})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	if diff := cmp.Diff([]string{"a_do"}, c.tools()); diff != "" {
		t.Error(diff)
	}
	has(t, "call", c.call("1", "b_do"), `exit status 3; 3 starts tried)\nlast stderr lines:\nno such database; it is tried again in 1s`)
	w.pass(1500 * time.Millisecond)
	has(t, "after the second", c.call("2", "b_do"), `it is tried again in`)
	want(t, "too early", c.general)
	w.pass(3 * time.Second)
	if n := c.general.changes(); n != 1 {
		t.Errorf("told %d times", n)
	}
	has(t, "there", c.call("3", "b_do"), `"text":"b"`)
}

// The text of an error is its message, also an empty one; one without a message is told whole.
func TestTextOfAnError(t *testing.T) {
	for raw, want := range map[string]string{
		`{"code":-1,"message":"no"}`: "no",
		`{"code":-1,"message":""}`:   "",
		`{"code":-1}`:                `{"code":-1}`,
		`{"message":7}`:              `{"message":7}`,
	} {
		if got := messageOf([]byte(raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// loud are the texts of events that are not for debugging alone.
type loud []string

// Emit implements event.Sink.
func (l *loud) Emit(e event.Event) {
	if e.Level >= slog.LevelInfo {
		*l = append(*l, e.Message)
	}
}

// A server that is away for hours, and that three sessions want, is told of once; again when it has worked meanwhile.
func TestAServerThatIsAwayForHours(t *testing.T) {
	var told loud
	w := newWorld(t, Options{Sink: &told})
	w.plan("b", plan{refuse: 1 << 20})
	w.serve(named("b"))
	for range 3 {
		w.legacy().wake()
	}
	w.pass(3 * time.Hour)
	if len(told) != 1 || !strings.HasPrefix(told[0], "Server b cannot be used: ") {
		t.Errorf("%d lines in three hours: %q", len(told), told)
	}
	w.plans["b"].refuse = 0
	well := w.legacy().wake()
	w.pass(time.Minute)
	if diff := cmp.Diff([]string{"b_do"}, well.tools()); diff != "" {
		t.Error(diff)
	}
	w.plans["b"].refuse = 1 << 20
	w.legacy().wake()
	w.pass(time.Hour)
	if len(told) != 2 {
		t.Errorf("after it has worked: %q", told)
	}
}

// Each session has a connection of its own to a server elsewhere. That it is away is told for all of them by one, as long as that is there.
func TestOneConnectionTellsThatItIsLost(t *testing.T) {
	s := newServer(time.Unix(0, 0), named("far"), nil)
	links := []*Link{{}, {}, {}}
	lines := func(from, minutes int, of []*Link) (n int) {
		for m := range minutes {
			for _, l := range of {
				if s.tellsOfLoss(l, time.Unix(int64(60*(from+m)), 0)) {
					n++
				}
			}
		}
		return n
	}
	if n := lines(100, 60, links); n != 60 {
		t.Errorf("%d lines in an hour", n)
	}
	if n := lines(160, 60, links[1:]); n != 59 {
		t.Errorf("%d lines in the hour after the one that told has gone", n)
	}
}

// A list that cannot be read once is read again; meanwhile it is what it was.
func TestListReadAgain(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{broken: 1})
	w.serve(named("a"))
	c := w.legacy()
	if diff := cmp.Diff([]string{}, c.tools()); diff != "" {
		t.Error(diff)
	}
	w.pass(2 * time.Second)
	if diff := cmp.Diff([]string{"a_do"}, c.tools()); diff != "" {
		t.Error(diff)
	}
	p := w.of("a")[0]
	p.plan.broken = 1
	p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.settle()
	if diff := cmp.Diff([]string{"a_do"}, c.tools()); diff != "" {
		t.Error(diff)
	}
}

// A client that leaves in the middle of a reading leaves nothing wrong behind for the next one.
func TestLeavingInTheMiddleOfALook(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{slow: true})
	w.serve(named("a"))
	c := w.legacy()
	c.Close(w.now)
	w.settle()
	w.plans["a"].slow = false
	if diff := cmp.Diff([]string{"a_do"}, w.legacy().tools()); diff != "" {
		t.Error(diff)
	}
}

// Clients are told of a list once when what they saw has changed, and not otherwise.
func TestListChanged(t *testing.T) {
	tests := []struct {
		name string
		next []string
		want int
	}{
		{"same", []string{"do", "see"}, 0},
		{"order", []string{"see", "do"}, 0},
		{"more", []string{"do", "see", "x"}, 1},
		{"less", []string{"do"}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.plan("a", plan{tools: []string{"do", "see"}, pages: true})
			w.serve(named("a"))
			saw, blind := w.legacy(), w.legacy()
			saw.tools()
			w.plans["a"].tools = test.next
			for _, p := range w.of("a") {
				for range 3 {
					p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				}
			}
			w.settle()
			w.pass(time.Minute)
			if n := saw.general.changes(); n != test.want {
				t.Errorf("told %d times", n)
			}
			want(t, "a client that has seen no list", blind.general)
		})
	}
}

func TestSecondInitialize(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"hang"}, uris: []string{"x:1"}})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	old := w.of("a")[0]
	call := c.call("1", "a_hang")
	has(t, "again", c.ask(`{"jsonrpc":"2.0","id":1.0,"method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}`), `"2024-11-05"`)
	has(t, "old call", call, "began a new session")
	if !old.closed || len(w.of("a")) != 0 {
		t.Error("the old process still runs")
	}
	c.wake()
	if m, _ := w.of("a")[0].last("initialize"); !strings.Contains(m.Raw, "2024-11-05") {
		t.Errorf("the new process was told %s", m.Raw)
	}
	for _, bad := range []string{``, `,"params":1`} {
		has(t, "without params", w.client().ask(`{"jsonrpc":"2.0","id":1,"method":"initialize"`+bad+`}`), `-32602`)
	}
}

func TestCloseWhenIdle(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true, tools: []string{"hang"}})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	call := c.call("1", "a_hang")
	done := 0
	c.CloseWhenIdle(w.now, 10*time.Second, func() { done++ })
	w.pass(time.Second)
	if done != 0 {
		t.Error("it left its call behind")
	}
	p := w.of("a")[0]
	p.answer(p.open[0], `"late"`)
	w.settle()
	w.pass(time.Millisecond)
	has(t, "answer", call, "late")
	if done != 1 || !p.closed {
		t.Errorf("done %d times, closed %t", done, p.closed)
	}

	stuck := w.legacy()
	stuck.tools()
	call = stuck.call("1", "a_hang")
	stuck.CloseWhenIdle(w.now, 10*time.Second, func() {
		has(t, "a call that has begun", call, `"id":1,"error":{"code":-32603,"message":"outcome unknown`)
		done++
	})
	w.plans["a"].mute = true
	unready := w.legacy()
	unsent := unready.call("1", "a_hang")
	unready.CloseWhenIdle(w.now, 10*time.Second, func() {
		has(t, "a call that no server has got", unsent, "the request was not delivered")
		done++
	})
	w.plans["a"].mute = false
	w.pass(9999 * time.Millisecond)
	if done != 1 || len(call.lines)+len(unsent.lines) > 0 {
		t.Errorf("done %d times, and got %q, %q", done, call.lines, unsent.lines)
	}
	w.pass(time.Millisecond)
	if done != 3 {
		t.Error("patience has no end")
	}

	listening := w.client() // nobody answers listening: it is not waited for
	listening.modern("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	listening.CloseWhenIdle(w.now, 10*time.Second, func() { done++ })
	w.pass(time.Millisecond)
	if done != 4 {
		t.Error("it waits for a listen")
	}
}

// A list that a server never answers does not keep it when its client leaves.
func TestAnUnansweredListIsCancelledAtTheEnd(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{caps: `{"tools":{},"prompts":{}}`, silent: []string{"prompts/list"}})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	p := w.of("a")[0]
	asked, _ := p.last("prompts/list")
	c.Close(w.now)
	w.settle()
	if m, ok := p.last("notifications/cancelled"); !ok || string(m.Params.RequestID) != string(asked.ID) || !p.closed {
		t.Errorf("closed %t, told %q", p.closed, m.Raw)
	}
}

// Servers that change together are told of once.
func TestChangesTogether(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	c.tools()
	for _, name := range []string{"a", "b"} {
		w.plans[name].tools = []string{"do", "more"}
		w.of(name)[0].say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		w.settle()
		w.pass(50 * time.Millisecond)
	}
	w.pass(time.Second)
	if n := c.general.changes(); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A process that is only to finish its calls reads no lists any more.
func TestRetiredProcessStopsReading(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"do", "hang"}, pages: true})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	c.call("1", "a_hang")
	p := w.of("a")[0]
	p.plan.slow = true
	p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.settle()
	w.serve(changedServer("a", "2"))
	read := p.count("tools/list")
	p.listTools(p.open[len(p.open)-1])
	w.settle()
	if p.closed || p.count("tools/list") != read {
		t.Errorf("closed %t; %d pages more", p.closed, p.count("tools/list")-read)
	}
}

// A list that is said to have changed while another one is still being read for the first time is not shown empty.
func TestListChangesWhileOthersAreReadFirst(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{slow: true, uris: []string{"x://1"}})
	w.serve(named("a"))
	c := w.legacy()
	list := c.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
	p := w.of("a")[0]
	p.say(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`) // its tools are not read yet
	w.gw.flush()
	p.listTools(p.open[0]) // now they are, and the resources are just being read again
	has(t, "resources", list, "x://1")
	w.settle()
}
