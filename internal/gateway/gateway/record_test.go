package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/line/backend"
)

// recorded is a client of the legacy era whose record is kept.
func (w *world) recorded(capabilities string) (c *client, kept *[]byte) {
	c = w.client()
	kept = new([]byte)
	c.keep = func(record []byte) { *kept = record }
	c.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":` + capabilities + `,"clientInfo":{"name":"c"}}}`)
	c.ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c, kept
}

// resumed is the client of a record.
func (w *world) resumed(kept *[]byte) *client {
	w.t.Helper()
	r, ok := readRecord(*kept)
	if !ok {
		w.t.Fatalf("not readable: %s", *kept)
	}
	c := w.client()
	c.keep = func(record []byte) { *kept = record }
	resume(c.Session, w.now, r)
	w.settle()
	return c
}

// known is what a run of a server with these tools has learned from a client of these raw capabilities, see [world.recorded].
func known(capabilities string, tools ...string) backend.Knowledge {
	offer := []byte(`{"capabilities":{"tools":{}}}`)
	return backend.Knowledge{
		Asked:      backend.AskedDigest([]byte(`{"protocolVersion":"2025-06-18","capabilities":` + capabilities + `}`)),
		Initialize: offer,
		Lists:      map[string][]byte{"legacy tools": []byte(list("tools", "name", tools))},
		ListedBy:   map[string][]string{"legacy tools": {offerDigest(offer)}},
	}
}

// offerDigest is a digest of a handshake result as a backend remembers it.
func offerDigest(result []byte) string {
	sum := sha256.Sum256(result)
	return hex.EncodeToString(sum[:8])
}

// warmed is a world with servers whose one tool is remembered: a and b, if none are given.
func warmed(t *testing.T, servers ...Server) *world {
	w := newWorld(t, Options{})
	if servers == nil {
		servers = listedTo("{}", "a", "b")
	}
	w.serve(servers...)
	w.gw.Warm(w.now)
	w.settle()
	return w
}

// listedTo are servers whose one tool was shown to a client of these raw capabilities by an earlier run.
func listedTo(capabilities string, names ...string) (all []Server) {
	for _, name := range names {
		s := named(name)
		s.Known = known(capabilities, "do")
		all = append(all, s)
	}
	return all
}

// A gateway that starts again knows the session: a call starts the process it needs, with the settings that the client has
// made, and no other.
func TestASessionGoesOnAtTheNextGateway(t *testing.T) {
	c, kept := warmed(t).recorded("{}")
	c.tools()
	c.ask(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`)

	w := warmed(t)
	c = w.resumed(kept)
	if n := len(w.of("a")) + len(w.of("b")); n != 0 {
		t.Errorf("%d processes run for a session that wants nothing", n)
	}
	has(t, "ping", c.ask(`{"jsonrpc":"2.0","id":2,"method":"ping"}`), `"result"`)
	has(t, "call", c.call("3", "b_do"), `"text":"b"`)
	if a, b := len(w.of("a")), w.of("b"); a != 0 || len(b) != 1 {
		t.Fatalf("%d and %d processes", a, len(b))
	}
	p := w.of("b")[0]
	if m, _ := p.last("initialize"); !strings.Contains(m.Raw, "2025-06-18") || !strings.Contains(m.Raw, `"name":"c"`) {
		t.Errorf("the process was told %s", m.Raw)
	}
	if m, _ := p.last("logging/setLevel"); m.Params.Level != "error" {
		t.Errorf("level %q", m.Params.Level)
	}
	w.pass(time.Minute)
	want(t, "nothing has changed", c.general)
	has(t, "an unknown tool", c.call("4", "b_never"), "Unknown tool")
	if tools := c.tools(); len(tools) != 2 {
		t.Errorf("tools %q", tools)
	}
}

func must(r record, _ bool) record { return r }

// A call of a tool that is remembered waits for its own server only.
func TestACallThatComesWithTheGateway(t *testing.T) {
	c, kept := warmed(t).recorded("{}")
	c.tools()
	w := newWorld(t, Options{})
	w.plan("b", plan{mute: true})
	w.plan("down", plan{refuse: 1000})
	w.serve(append(listedTo("{}", "a", "b"), named("down"))...)
	c = w.resumed(kept)
	in := c.call("1", "b_do")
	want(t, "too early", in)
	p := w.of("b")[0]
	p.plan.mute = false
	m, _ := p.last("initialize")
	p.greet(m)
	w.settle()
	has(t, "call", in, `"text":"b"`)
	if n := len(w.procs); n != 1 {
		t.Errorf("%d processes", n)
	}
}

// A session that goes on, and of whose servers nothing is remembered, asks them.
func TestACallOfWhichNothingIsRemembered(t *testing.T) {
	c, kept := warmed(t).recorded("{}")
	c.tools()
	w := warmed(t, named("a"), named("b"))
	c = w.resumed(kept)
	has(t, "call", c.call("1", "b_do"), `"text":"b"`)
	has(t, "another", c.call("2", "a_do"), `"text":"a"`)
}

// Subscriptions are renewed at once, and the client told, since it may have missed something.
func TestSubscriptionsGoOn(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			s := named("a")
			s.Shared = shared
			serve := func() *world {
				w := newWorld(t, Options{})
				w.plan("a", plan{uris: []string{"file:///1", "file:///2"}})
				w.serve(s, named("b"))
				w.gw.Warm(w.now)
				w.settle()
				return w
			}
			c, kept := serve().recorded("{}")
			c.ask(`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`)
			for i, what := range []string{"subscribe|1", "subscribe|2", "unsubscribe|2"} {
				method, n, _ := strings.Cut(what, "|")
				has(t, what, c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/%s","params":{"uri":"file:///%s"}}`, i+2, method, n)), `"result"`)
			}
			w := serve()
			c = w.resumed(kept)
			p := w.of("a")[len(w.of("a"))-1]
			if m, ok := p.last("resources/subscribe"); !ok || m.Params.URI != "file:///1" || p.count("resources/subscribe") != 1 {
				t.Errorf("subscribed to %s", m.Raw)
			}
			has(t, "told", c.general, `"uri":"file:///1"`)
			if n := len(w.of("b")); n != 0 {
				t.Errorf("%d processes of b", n)
			}
			p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///1"}}`)
			has(t, "updated", c.general, `"uri":"file:///1"`)
			if again := w.resumed(kept); len(again.subs) != 1 {
				t.Errorf("%d subscriptions in the next record", len(again.subs))
			}
		})
	}
}

// A client that has read its tools is told if others are remembered by the next gateway, and only then.
func TestListsThatChangedWithTheGateway(t *testing.T) {
	for _, test := range []struct {
		name, can string
		servers   []string
		read      bool
		changes   int
	}{
		{"the same", "{}", []string{"a", "b"}, true, 0},
		{"another order", "{}", []string{"b", "a"}, true, 0},
		{"one less", "{}", []string{"a"}, true, 1},
		{"one more", "{}", []string{"a", "b", "c"}, true, 1},
		{"never read", "{}", []string{"a"}, false, 0},
		{"the same, capable", `{"sampling":{}}`, []string{"a", "b"}, true, 0},
		{"one less, capable", `{"sampling":{}}`, []string{"a"}, true, 1},
		{"one more, capable", `{"sampling":{}}`, []string{"a", "b", "c"}, true, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, kept := warmed(t).recorded(test.can)
			if test.read {
				c.tools()
			}
			w := warmed(t, listedTo(test.can, test.servers...)...)
			c = w.resumed(kept)
			w.pass(time.Second)
			if n := c.general.changes(); n != test.changes {
				t.Errorf("told %d times, want %d", n, test.changes)
			}
			has(t, "call", c.call("1", "a_do"), `"text":"a"`)
			w.pass(time.Second)
			if n := c.general.changes(); n != test.changes {
				t.Errorf("told %d times in the end, want %d", n, test.changes)
			}
			kept2 := *kept
			again := w.resumed(&kept2)
			w.pass(time.Second)
			if n := again.general.changes(); n != 0 {
				t.Errorf("told %d times by the gateway after that", n)
			}
		})
	}
}

// A server of which nothing is known, perhaps for ever, is no reason to keep it from a client that others have changed.
func TestListsThatChangedBesideABrokenServer(t *testing.T) {
	for _, test := range []struct {
		name    string
		servers []Server // besides the broken one
		first   int      // changes that are told while that is broken
		last    int      // and when a client that can do the same has come, and it works
	}{
		{"the same", listedTo("{}", "a", "b"), 0, 1},
		{"one less", listedTo("{}", "a"), 1, 2},
		{"one more", listedTo("{}", "a", "b", "c"), 1, 2},
		{"one more, of which nothing is remembered", append(listedTo("{}", "a", "b"), named("c")), 0, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			old := newWorld(t, Options{})
			old.plan("down", plan{refuse: 1000})
			old.serve(named("a"), named("b"), named("down"))
			c, kept := old.recorded("{}")
			if diff := cmp.Diff([]string{"a_do", "b_do"}, c.tools()); diff != "" {
				t.Fatal(diff)
			}
			w := newWorld(t, Options{})
			w.plan("down", plan{refuse: 3})
			w.serve(append(test.servers, named("down"))...)
			w.gw.Warm(w.now)
			w.settle()
			c = w.resumed(kept)
			w.pass(500 * time.Millisecond)
			if n := c.general.changes(); n != test.first {
				t.Errorf("told %d times", n)
			}
			like, _ := w.recorded("{}")
			like.tools()
			w.pass(time.Minute)
			if n := c.general.changes(); n != test.last {
				t.Errorf("told %d times when all work", n)
			}
		})
	}
}

// A client that goes on from a record, and has no process yet, is told of what a server shows to others.
func TestListThatChangesBeforeTheFirstRequest(t *testing.T) {
	c, kept := warmed(t).recorded("{}")
	c.tools()
	w := warmed(t)
	like, _ := w.recorded("{}")
	like.tools()
	c = w.resumed(kept)
	w.pass(time.Second)
	want(t, "nothing has changed", c.general)
	p := w.of("a")[0]
	p.plan.tools = []string{"do", "x"}
	p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.settle()
	w.pass(time.Second)
	if n := c.general.changes(); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A client is told what it has lost with its gateway, unless that was nothing or it wants to hear of errors only.
func TestWhatASessionHasLost(t *testing.T) {
	for _, test := range []struct {
		name, does string
		told       bool
	}{
		{"nothing was asked", `"method":"ping"`, false},
		{"it has read its tools", `"method":"tools/list"`, true},
		{"it wants all messages", `"method":"logging/setLevel","params":{"level":"debug"}`, true},
		{"it wants errors", `"method":"logging/setLevel","params":{"level":"error"}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, kept := warmed(t).recorded("{}")
			if strings.Contains(test.does, "setLevel") {
				c.tools()
			}
			has(t, "answered", c.ask(`{"jsonrpc":"2.0","id":1,`+test.does+`}`), `"result"`)
			r, ok := readRecord(*kept)
			if line := string(r.loss()); !ok || strings.Contains(line, "what servers had in memory for it is lost") != test.told || (line != "") != test.told {
				t.Errorf("%t: the client is told %q", ok, line)
			}
		})
	}
}

// A record is made when something of the session has changed, never for a call.
func TestWhenARecordIsMade(t *testing.T) {
	w := warmed(t)
	c, _ := w.recorded("{}")
	records := 0
	c.keep = func([]byte) { records++ }
	for n, want := range map[string]int{
		`"method":"ping"`:       0,
		`"method":"tools/list"`: 1,
		`"method":"logging/setLevel","params":{"level":"info"}`: 1,
		`"method":"tools/call","params":{"name":"a_do"}`:        0,
	} {
		c.tools()
		records = 0
		if n == `"method":"tools/list"` {
			c.seen = seen{}
		}
		has(t, n, c.ask(`{"jsonrpc":"2.0","id":1,`+n+`}`), `"result"`)
		if records != want {
			t.Errorf("%s: %d records, want %d", n, records, want)
		}
	}
	records = 0
	c.Close(w.now)
	if records != 0 {
		t.Error("a session that ends makes a record")
	}
}
