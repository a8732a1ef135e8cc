package gateway

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
)

// part is a view of whole servers.
func part(name string, servers ...string) View {
	v := View{Name: name, Servers: map[string]catalog.Filter{}}
	for _, s := range servers {
		v.Servers[s] = catalog.Filter{}
	}
	return v
}

// viewing is a client with this view that has shaken hands.
func (w *world) viewing(view string) *client {
	c := w.client()
	c.Session.view = view
	c.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c"}}}`)
	c.ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// asking is a client without a session that has this view.
func (w *world) asking(view string) *client {
	c := w.client()
	c.Session.view = view
	return c
}

// resourcesOf are the URIs in the answer to resources/list.
func resourcesOf(t failer, in *inbox) []string {
	var page struct{ Resources []struct{ URI string } }
	if len(in.lines) != 1 || json.Unmarshal(parse(t, in.lines[0]).Result, &page) != nil {
		t.Fatalf("no list: %v", in.lines)
	}
	all := []string{}
	for _, r := range page.Resources {
		all = append(all, r.URI)
	}
	return all
}

// What a client does not see does not exist for it, by whatever name it asks; and nothing of it is started for it.
func TestViewHidesAll(t *testing.T) {
	type how struct {
		list     func(c *client) []string
		ask      func(c *client, method, params string) *inbox
		notFound string // of a resource
	}
	legacy := how{
		list: func(c *client) []string { return c.tools() },
		ask: func(c *client, method, params string) *inbox {
			return c.ask(`{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":{` + params + `}}`)
		},
		notFound: `"code":-32002`,
	}
	modern := how{
		list: func(c *client) []string { return toolsOf(c.world.t, c.modern(`"l"`, "tools/list", "")) },
		ask: func(c *client, method, params string) *inbox {
			return c.modern("7", method, params+",")
		},
		notFound: `"code":-32602`,
	}
	for era, h := range map[string]how{"legacy": legacy, "modern": modern} {
		t.Run(era, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.gw.opts.NoTools = false
			w.plan("a", plan{modern: true, tools: []string{"do", "hang"}, uris: []string{"f:/a", "same:1"}})
			w.plan("b", plan{modern: true, uris: []string{"f:/b", "same:1"}})
			one := part("one", "a")
			one.Servers["a"] = catalog.Filter{Deny: []string{"hang"}}
			bare := part("bare", "b")
			bare.NoTools = true
			w.gw.SetServers(w.now, []Server{named("a"), named("b")}, one, bare, part("none"))
			open := func(view string) *client {
				if era == "modern" {
					return w.asking(view)
				}
				return w.viewing(view)
			}
			for _, tc := range []struct {
				view string
				want []string
				runs int // of b
			}{
				{"none", []string{toolStatus, toolRestart}, 0}, {"gone", []string{}, 0}, {"one", []string{"a_do", toolStatus, toolRestart}, 0},
				{"bare", []string{"b_do"}, 1},
			} {
				if diff := cmp.Diff(tc.want, h.list(open(tc.view))); diff != "" {
					t.Errorf("%s: %s", tc.view, diff)
				}
				if runs := len(w.of("b")); runs != tc.runs {
					t.Errorf("%s: %d processes of b", tc.view, runs)
				}
			}
			c, other := open("one"), open("bare")
			if diff := cmp.Diff([]string{"f:/a", "same:1"}, resourcesOf(t, h.ask(c, "resources/list", `"x":1`))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"f:/b", "same:1"}, resourcesOf(t, h.ask(other, "resources/list", `"x":1`))); diff != "" {
				t.Error(diff)
			}
			for _, tc := range []struct{ method, params, want string }{
				{"tools/call", `"name":"a_do"`, `"text":"a"`},
				{"tools/call", `"name":"a_hang"`, `"code":-32602,"message":"Unknown tool: a_hang"`},
				{"tools/call", `"name":"b_do"`, `"code":-32602,"message":"Unknown tool: b_do"`},
				{"tools/call", `"name":"c_do"`, `"code":-32602,"message":"Unknown tool: c_do"`},
				{"prompts/get", `"name":"b_ask"`, `"code":-32602,"message":"Unknown prompt: b_ask"`},
				{"resources/read", `"uri":"f:/a"`, `"text":"a"`},
				{"resources/read", `"uri":"same:1"`, `"text":"a"`},
				{"completion/complete", `"ref":{"type":"ref/prompt","name":"b_ask"},"argument":{"name":"x","value":""}`, "Unknown reference"},
				{"tools/call", `"name":"` + toolRestart + `","arguments":{"server":"b"}`, `There is no server \"b\". There are: a.`},
			} {
				has(t, tc.method+tc.params, h.ask(c, tc.method, tc.params), tc.want)
			}
			// Nobody of the other view has it, so it may be asked for what no list has, but never b.
			reads := func() (n int) {
				for _, p := range w.of("b") {
					n += p.count("resources/read")
				}
				return n
			}
			told := reads()
			has(t, "a resource of b", h.ask(c, "resources/read", `"uri":"f:/b"`), `"text":"a"`)
			has(t, "the same of the other", h.ask(other, "resources/read", `"uri":"same:1"`), `"text":"b"`)
			if now := reads(); now != told+1 {
				t.Errorf("b was read %d times by who does not see it", now-told-1)
			}
			has(t, "another view's own tools", h.ask(other, "tools/call", `"name":"`+toolStatus+`"`), "Unknown tool")
			has(t, "nothing", h.ask(open("none"), "resources/read", `"uri":"f:/a"`), h.notFound)
		})
	}
}

// A client of a view is told of its own processes, and of those that many use. Who sees everything is told of all.
func TestViewKnowsItsOwnProcesses(t *testing.T) {
	w := newWorld(t, Options{})
	w.gw.opts.NoTools = false
	many := named("many")
	many.Shared = true
	w.gw.SetServers(w.now, []Server{named("own"), many}, part("v", "own", "many"), part("w", "own"))
	all, one, other, another := w.viewing(""), w.viewing("v"), w.viewing("w"), w.viewing("v")
	another.Session.principal = "somebody else"
	for _, c := range []*client{all, one, other, another} {
		c.tools()
	}
	for name, tc := range map[string]struct {
		client *client
		want   string
	}{"everything": {all, "fine: many own own own own"}, "a view": {one, "fine: many own"}, "another": {other, "fine: own"}} {
		has(t, name, tc.client.call("9", toolStatus), `"text":"`+tc.want+`"`)
	}
	hidden := []HiddenResource{{"f:1", "own"}, {"f:2", "many"}}
	if got := (ServerStatus{Hidden: hidden}).toldTo(other.Session).Hidden; len(got) != 1 || got[0].Of != "own" {
		t.Errorf("told of %v", got)
	}
}

// What servers say by themselves reaches only who sees them, also where all share one process.
func TestViewHearsOnlyItsServers(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"do", "hang"}})
	w.plan("b", plan{})
	a, b := named("a"), named("b")
	a.Shared, b.Shared = true, true
	w.gw.SetServers(w.now, []Server{a, b}, part("va", "a"), part("vb", "b"))
	ca, cb := w.viewing("va").wake(), w.viewing("vb").wake()
	has(t, "level", ca.ask(`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`), "{}")
	if m, told := w.of("b")[0].last("logging/setLevel"); told {
		t.Errorf("b was told by who does not see it: %s", m.Raw)
	}
	ca.tools()
	cb.tools()
	w.of("a")[0].say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`)
	has(t, "log", ca.general, "notifications/message")
	w.plans["a"].tools = []string{"do", "hang", "new"}
	w.of("a")[0].say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.settle()
	w.pass(changedAfter)
	if ca.general.changes() != 1 {
		t.Errorf("who sees a was told %d times", ca.general.changes())
	}
	want(t, "who sees b", cb.general)
}

// The configuration changes a view while it is used: its clients are told, what they do not see any more ends for them,
// and what is new is started. The others notice nothing.
func TestViewChanges(t *testing.T) {
	w := newWorld(t, Options{})
	for _, name := range []string{"a", "b"} {
		w.plan(name, plan{tools: []string{"do", "hang"}, uris: []string{name + ":1"}})
	}
	servers := []Server{named("a"), named("b")}
	w.gw.SetServers(w.now, servers, part("v", "a"), part("w", "a"))
	c, other := w.viewing("v"), w.viewing("w")
	c.tools()
	other.tools()
	has(t, "subscribe", c.ask(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:1"}}`), "{}")
	hangs := c.call("4", "a_hang")
	own := w.of("a")[0]
	w.gw.SetServers(w.now, servers, part("v", "b"), part("w", "a"))
	w.settle()
	w.pass(changedAfter)
	if c.general.changes() != 1 || other.general.changes() != 0 {
		t.Errorf("told %d and %d times", c.general.changes(), other.general.changes())
	}
	if diff := cmp.Diff([]string{"b_do", "b_hang"}, c.tools()); diff != "" {
		t.Error(diff)
	}
	has(t, "a call of a", c.call("5", "a_do"), "Unknown tool: a_do")
	own.answer(own.open[len(own.open)-1], `"late"`)
	w.settle()
	has(t, "the call in flight", hangs, `"result":"late"`)
	if !own.closed || len(w.of("a")) != 1 || len(w.of("b")) != 1 || len(c.Session.subs) != 0 {
		t.Errorf("closed %v, %d of a, %d of b, subscriptions %v", own.closed, len(w.of("a")), len(w.of("b")), c.Session.subs)
	}
	// One tool less, and a view that is taken away.
	less := part("v")
	less.Servers["b"] = catalog.Filter{Deny: []string{"hang"}}
	w.gw.SetServers(w.now, servers, less)
	w.settle()
	w.pass(changedAfter)
	if c.general.changes() != 2 || other.general.changes() != 1 {
		t.Errorf("told %d and %d times", c.general.changes(), other.general.changes())
	}
	if diff := cmp.Diff([]string{"b_do"}, c.tools()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{}, other.tools()); diff != "" || len(w.of("a")) != 0 {
		t.Errorf("%s; %d of a run", diff, len(w.of("a")))
	}
}

// The same for a client that listens without a session.
func TestListenSeesItsView(t *testing.T) {
	w := newWorld(t, Options{})
	for _, name := range []string{"a", "b"} {
		w.plan(name, plan{modern: true, tools: []string{"do"}, uris: []string{name + ":1"}})
	}
	servers := []Server{named("a"), named("b")}
	w.gw.SetServers(w.now, servers, part("v", "a"))
	in := w.asking("v").modern("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1","b:1"]},`)
	has(t, "listen", in, "acknowledged")
	if len(w.of("b")) != 0 {
		t.Error("b runs for nobody")
	}
	w.asking("").modern("2", "tools/list", "") // now it does, for somebody else
	b := w.of("b")[0]
	w.plans["b"].tools = []string{"do", "new"}
	b.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`)
	w.settle()
	w.pass(changedAfter)
	want(t, "what is hidden changes", in)
	for _, m := range b.told {
		if strings.Contains(m.Raw, `"b:1"`) {
			t.Errorf("it listens at b: %s", m.Raw)
		}
	}
	w.gw.SetServers(w.now, servers, part("v", "b"))
	w.settle()
	w.pass(changedAfter)
	if in.changes() != 1 {
		t.Errorf("told %d times: %v", in.changes(), in.lines)
	}
	if m, ok := w.of("a")[0].last("notifications/cancelled"); !ok {
		t.Errorf("a was not told that nobody listens any more: %v", m)
	}
	if m, ok := b.last("subscriptions/listen"); !ok || !strings.Contains(m.Raw, `"b:1"`) {
		t.Errorf("nobody listens at b: %s", m.Raw)
	}
}

// Whether a client gets the modern era depends on the servers that it sees.
func TestViewDecidesOnTheEra(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true})
	w.plan("b", plan{})
	w.gw.SetServers(w.now, []Server{named("a"), named("b")}, part("modern", "a"), part("legacy", "b"))
	has(t, "a server that speaks it", w.asking("modern").modern("1", "server/discover", ""), "supportedVersions")
	if len(w.procs) != 1 {
		t.Errorf("%d servers were tried for it", len(w.procs))
	}
	has(t, "one that does not", w.asking("legacy").modern("1", "server/discover", ""), "-32601")
	has(t, "everything", w.asking("").modern("1", "server/discover", ""), "-32601")
}
