package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// A server may show other tools to a client that can do more. What one client was shown is not shown to another one.
func TestListsOfOtherCapabilitiesAreNotShown(t *testing.T) {
	for _, order := range [][]string{{`{}`, `{"sampling":{}}`}, {`{"sampling":{}}`, `{}`}} {
		w := newWorld(t, Options{})
		w.plan("a", plan{extra: []string{"ask"}})
		w.serve(named("a"))
		for i, capabilities := range slices.Concat(order, order) {
			want := []string{"a_do"}
			if capabilities != "{}" {
				want = append(want, "a_ask")
			}
			known := i > 1 // its like was shown this before: that is shown at once
			w.plans["a"].mute, w.plans["a"].slow = known, true
			c := w.can(capabilities)
			list := c.ask(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
			if !known {
				p := w.of("a")[0]
				p.listTools(p.open[0])
			}
			if diff := cmp.Diff(want, toolsOf(t, list)); diff != "" {
				t.Errorf("%d after %v: %s", i, order[0], diff)
			}
			c.Close(w.now)
			w.settle()
		}
	}
}

// Members in another order are the same capabilities; another version of the protocol is another client.
func TestCapabilityKey(t *testing.T) {
	key := func(params string) string { return capabilityKey([]byte(params)) }
	base := key(`{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{}},"clientInfo":{"name":"a"}}`)
	for params, same := range map[string]bool{
		`{"capabilities":{"sampling":{},"roots":{"listChanged":true}},"protocolVersion":"2025-11-25","clientInfo":{"name":"b"}}`: true,
		`{"protocolVersion":"2025-06-18","capabilities":{"roots":{"listChanged":true},"sampling":{}}}`:                           false,
		`{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":false},"sampling":{}}}`:                          false,
		`{"protocolVersion":"2025-11-25","capabilities":{}}`:                                                                     false,
		`{"protocolVersion":"2025-11-25"}`: false,
	} {
		if (key(params) == base) != same {
			t.Errorf("%s: the same is %t, want %t", params, !same, same)
		}
	}
}

// What earlier runs have shown answers and routes until the server was asked. A difference is told once.
func TestTheFirstListComesFromMemory(t *testing.T) {
	for _, test := range []struct {
		name    string
		shows   []string // by the server
		broken  int      // how often its list cannot be read
		changes int
	}{
		{"the same", []string{"do"}, 0, 0},
		{"another", []string{"do", "new"}, 0, 1},
		{"none any more", []string{}, 0, 1},
		{"the same, at the second try", []string{"do"}, 1, 0},
		{"another, at the second try", []string{"do", "new"}, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := warmed(t, listedTo("{}", "a")...)
			w.plan("a", plan{tools: test.shows, mute: true, broken: test.broken})
			c, _ := w.recorded("{}")
			if diff := cmp.Diff([]string{"a_do"}, c.tools()); diff != "" {
				t.Fatalf("first: %s", diff)
			}
			call := c.call("1", "a_do")
			want(t, "before the server is up", call)
			p := w.of("a")[0]
			p.plan.mute = false
			m, _ := p.last("initialize")
			p.greet(m)
			w.settle()
			has(t, "call", call, `"text":"a"`)
			if test.broken > 0 {
				if diff := cmp.Diff([]string{"a_do"}, c.tools()); diff != "" {
					t.Errorf("while the list cannot be read: %s", diff)
				}
			}
			w.pass(time.Minute)
			if n := c.general.changes(); n != test.changes {
				t.Errorf("told %d times, want %d", n, test.changes)
			}
			shown := []string{}
			for _, tool := range test.shows {
				shown = append(shown, "a_"+tool)
			}
			if diff := cmp.Diff(shown, c.tools()); diff != "" {
				t.Errorf("in the end: %s", diff)
			}
		})
	}
}

// A list of which a part is not remembered is not shown.
func TestAPartOfTheListsIsNotShown(t *testing.T) {
	s := named("a")
	s.Known = known("{}", "do")
	s.Known.Initialize = []byte(`{"capabilities":{"tools":{},"prompts":{}}}`)
	s.Known.ListedBy = map[string][]string{"legacy tools": {offerDigest(s.Known.Initialize)}}
	w := warmed(t, s)
	w.plan("a", plan{mute: true})
	c, _ := w.recorded("{}")
	if tools := c.tools(); tools != nil {
		t.Errorf("%q", tools)
	}
}

// A program that is not there is no server to wait for. One that has worked is started again.
func TestAProgramThatCannotBeStarted(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(named("a"), named("b"))
	w.legacy().tools()
	missing := event.Event{Type: event.SpawnFailed, Time: w.now, Message: "Server could not be started: command not found: x"}
	fresh := newServer(w.now, named("c"), nil)
	for s, want := range map[*server]string{w.gw.servers[0]: "usable", fresh: "unusable could not be started: command not found: x"} {
		s.heard(missing)
		if got := strings.TrimSpace(s.standing.String() + " " + s.trouble); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What is known to be unusable delays nobody after the first client, however often it was tried; when it works, clients are told.
func TestBadServersDelayNobody(t *testing.T) {
	w := newWorld(t, Options{ListWait: 15 * time.Second})
	w.plan("good", plan{})
	w.plan("mute", plan{mute: true})
	w.plan("missing", plan{refuse: 1000})
	w.plan("unlisted", plan{slow: true})
	w.serve(named("good"), named("mute"), named("missing"), named("unlisted"))
	first := w.legacy().ask(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	w.pass(16 * time.Second)
	if diff := cmp.Diff([]string{"good_do"}, toolsOf(t, first)); diff != "" {
		t.Error(diff)
	}
	var all []*client
	for i := range 10 {
		c := w.legacy()
		if diff := cmp.Diff([]string{"good_do"}, c.tools()); diff != "" {
			t.Errorf("session %d: %s", i, diff)
		}
		all = append(all, c)
	}
	has(t, "call", all[0].call("5", "mute_do"), "server mute cannot be used: ")
	w.plans["unlisted"].slow = false
	for _, p := range w.of("unlisted") {
		for _, m := range p.open {
			p.listTools(m)
		}
	}
	w.settle()
	w.pass(time.Second)
	for i, c := range all {
		if n := c.general.changes(); n != 1 {
			t.Errorf("session %d was told %d times", i, n)
		}
	}
	if diff := cmp.Diff([]string{"good_do", "unlisted_do"}, all[3].tools()); diff != "" {
		t.Error(diff)
	}
}

// Nobody waits longer than ListWait from the first process on that a client needs, whenever others come.
func TestTheWaitBeginsWithTheFirstClient(t *testing.T) {
	w := newWorld(t, Options{ListWait: 15 * time.Second})
	w.plan("good", plan{})
	w.plan("mute", plan{mute: true, modern: true})
	w.serve(named("good"), named("mute"))
	w.gw.Warm(w.now)
	w.settle()
	w.pass(12 * time.Second)
	w.legacy().ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.pass(12 * time.Second)
	c := w.legacy()
	list := c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.pass(2900 * time.Millisecond)
	want(t, "too early", list)
	w.pass(200 * time.Millisecond)
	if diff := cmp.Diff([]string{"good_do"}, toolsOf(t, list)); diff != "" {
		t.Error(diff)
	}
}

// A session costs no process before it wants something of the servers.
func TestInitializeStartsNothing(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(named("a"), named("b"))
	for range 20 {
		w.legacy()
	}
	if n := len(w.procs); n != 0 {
		t.Errorf("%d processes for clients that have only said hello", n)
	}
	c := w.legacy()
	has(t, "ping", c.ask(`{"jsonrpc":"2.0","id":3,"method":"ping"}`), `"result":{}`)
	has(t, "level", c.ask(`{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"info"}}`), `"result":{}`)
	if n := len(w.procs); n != 0 {
		t.Errorf("%d processes for what the gateway answers itself", n)
	}
	c.tools()
	if n := len(w.procs); n != 2 {
		t.Errorf("%d processes after a list", n)
	}
	if m, ok := w.of("a")[0].last("logging/setLevel"); !ok || m.Params.Level != "info" {
		t.Errorf("the level did not come along: %s", m.Raw)
	}
}

// What another client is shown meanwhile is no reason to refuse a tool that waits for its server's list.
func TestAToolThatAnotherClientIsShown(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{mute: true})
	server := named("a")
	server.Legacy = true
	w.serve(server)
	early := w.legacy()
	answer := early.call("1", "a_do")
	first := w.of("a")[0]
	w.plans["a"].mute = false
	if diff := cmp.Diff([]string{"a_do"}, w.legacy().wake().tools()); diff != "" {
		t.Error(diff)
	}
	w.pass(time.Second)
	if len(answer.lines) > 0 {
		t.Fatalf("before its own server is up: %s", answer.lines)
	}
	m, _ := first.last("initialize")
	first.plan.mute = false
	first.greet(m)
	w.settle()
	has(t, "call", answer, `"result"`)
}

// A tool that the remembered lists lack may be newer than they are: the call waits for the list of its own server.
func TestAToolThatIsNewerThanTheRememberedLists(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"old"}})
	server := named("a")
	server.Legacy = true
	w.serve(server)
	if diff := cmp.Diff([]string{"a_old"}, w.legacy().tools()); diff != "" {
		t.Error(diff)
	}
	w.plan("a", plan{mute: true, tools: []string{"old", "do"}})
	c := w.legacy()
	answer, none := c.call("1", "a_do"), c.call("2", "a_none")
	w.pass(time.Second)
	if len(answer.lines) > 0 {
		t.Fatalf("before its own server is up: %s", answer.lines)
	}
	own := w.of("a")[1]
	m, _ := own.last("initialize")
	own.plan.mute = false
	own.greet(m)
	w.settle()
	has(t, "call", answer, `"result"`)
	has(t, "of nobody", none, "Unknown tool: a_none")
}

// Of servers with the same URI the first one has it, also while only another one has shown its list: a subscription that went to the
// other would be told nothing of what the client reads later.
func TestAURIOfTwoServersWhileTheFirstStarts(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{mute: true, uris: []string{"same:1"}})
	w.plan("b", plan{uris: []string{"same:1"}})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`) // b shows what it has
	answer := c.ask(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"same:1"}}`)
	w.pass(time.Second)
	first := w.of("a")[0]
	m, _ := first.last("initialize")
	first.plan.mute = false
	first.greet(m)
	w.settle()
	has(t, "subscribe", answer, `"result"`)
	for _, p := range w.procs {
		if want := p.name == "a"; (p.count("resources/subscribe") == 1) != want {
			t.Errorf("%s was asked: %v, want %v", p.name, !want, want)
		}
	}
}

// A client without a process of a server is shown what its like were shown last. When that changes, it is told, too.
func TestListThatChangesForAClientWithoutAProcess(t *testing.T) {
	dies := func(w *world, c *client) []string {
		w.plans["a"].mute = true
		c.wake()
		w.of("a")[0].end()
		w.plans["a"].mute = false
		return c.tools()
	}
	leaves := func(w *world, c *client) []string {
		defer c.Release(w.now)
		return c.tools()
	}
	tests := []struct {
		name string
		lose func(w *world, c *client) []string // and what it has read
		saw  []string
		then []string // what the server shows to the other client
		want int
	}{
		{"its process has ended before it could show anything", dies, []string{"b_do"}, []string{"do"}, 1},
		{"it is away, and there is more", leaves, []string{"a_do", "b_do"}, []string{"do", "x"}, 1},
		{"it is away, and nothing has changed", leaves, []string{"a_do", "b_do"}, []string{"do"}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.plan("a", plan{})
			w.serve(named("a"), named("b"))
			c := w.legacy()
			if diff := cmp.Diff(test.saw, test.lose(w, c)); diff != "" {
				t.Fatal(diff)
			}
			w.pass(time.Second)
			w.plans["a"].tools = test.then
			w.legacy().tools()
			w.pass(time.Second)
			if n := c.general.changes(); n != test.want {
				t.Errorf("told %d times, want %d", n, test.want)
			}
		})
	}
}

// Since when a server does not work is not set anew by tries, also not by other processes of it.
func TestSinceWhenAServerStands(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{refuse: 3})
	w.serve(named("a"))
	configured := w.now
	w.legacy().wake()
	s := w.gw.servers[0]
	w.pass(3 * time.Second)
	if got := s.sinceOf(nil); s.standing != unusable || !got.Equal(configured) {
		t.Errorf("it is %v since %s, want %s: it never worked", s.standing, got, configured)
	}
	w.pass(27 * time.Second)
	mended := s.sinceOf(nil)
	if s.standing != usable || !mended.After(configured) {
		t.Errorf("it is %v since %s", s.standing, mended)
	}
	crashed := w.now.Add(time.Second)
	for n := range 3 {
		s.heard(event.Event{Type: event.ServerCrashed, Time: crashed.Add(time.Duration(n) * time.Minute)})
		s.fails(crashed.Add(time.Duration(n)*time.Minute+time.Second), "exit status 3")
	}
	if got := s.sinceOf(nil); !got.Equal(crashed) {
		t.Errorf("it is broken since %s, want %s", got, crashed)
	}
	s.works(crashed.Add(time.Hour))
	if got := s.sinceOf(nil); !got.Equal(crashed.Add(time.Hour)) {
		t.Errorf("it works since %s, want %s: since then it was mended", got, crashed.Add(time.Hour))
	}
}
