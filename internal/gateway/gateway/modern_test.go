package gateway

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func (c *client) callModern(id, tool, more string) *inbox {
	return c.modern(id, "tools/call", fmt.Sprintf(`"name":%q,%s`, tool, more))
}

// server/discover is answered when every server speaks the modern era; otherwise the client is to use the earlier one.
func TestDiscover(t *testing.T) {
	speaks, does, says := plan{modern: true}, plan{}, plan{mute: true}
	tests := []struct {
		name  string
		plans map[string]plan
		after time.Duration // when it is answered at the latest
		want  string
	}{
		{"all are modern", map[string]plan{"a": speaks, "b": speaks}, 0, `"supportedVersions":["2026-07-28"]`},
		{"one is not", map[string]plan{"a": speaks, "b": does}, 0, `-32601`},
		{"none is", map[string]plan{"a": does, "b": does}, 0, `-32601`},
		{"one says nothing", map[string]plan{"a": speaks, "b": says}, 5 * time.Second, `-32601`},
		{"one is broken", map[string]plan{"a": speaks, "b": {modern: true, refuse: 1}}, 0, `-32601`},
		{"one has to be asked twice", map[string]plan{"a": {modern: true, unsure: 1}, "b": speaks}, 0, `"supportedVersions"`},
		{"lists are slow", map[string]plan{"a": speaks, "b": {modern: true, slow: true}}, 0, `"supportedVersions"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, Options{})
			for name, p := range test.plans {
				w.plan(name, p)
			}
			w.serve(named("a"), named("b"))
			in := w.client().modern("1", "server/discover", "")
			if test.after > 0 {
				want(t, "early", in)
				w.pass(test.after)
			}
			has(t, "discover", in, test.want)
		})
	}
	all := map[string]plan{"a": {bridge: true}, "b": {bridge: true}}
	one := map[string]plan{"a": {modern: true}, "b": {}}
	mixed := map[string]plan{"a": {modern: true, only: true, bridge: true}, "b": {bridge: true}}
	for name, test := range map[string]struct {
		plans    map[string]plan
		id, want string
		other    string // of b: how it is known
		starts   int    // of b
		single   bool
	}{
		"a mix that is translated":              {mixed, "1", `"supportedVersions"`, "", 1, false},
		"a mix that is known":                   {mixed, "1", `"supportedVersions"`, "legacy", 0, false},
		"all would be translated":               {all, "1", `"supportedVersions"`, "", 1, false},
		"for one client":                        {all, "1", "-32601", "", 1, true},
		"for one client, which may need it":     {all, `"server-discover-probe-1"`, `"supportedVersions"`, "", 1, true},
		"one is not translated":                 {one, `"server-discover-probe-1"`, "-32601", "", 1, false},
		"for one client, one is not translated": {one, `"server-discover-probe-1"`, "-32601", "", 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Options{Single: test.single})
			var servers []Server
			for _, name := range []string{"a", "b"} {
				w.plan(name, test.plans[name])
				s := named(name)
				s.Bridge, s.Legacy = test.plans[name].bridge, name == "b" && test.other != ""
				servers = append(servers, s)
			}
			w.serve(servers...)
			has(t, "discover", w.client().modern(test.id, "server/discover", ""), test.want)
			started := 0
			for _, p := range w.procs {
				if p.name == "b" {
					started++
				}
			}
			if started != test.starts || len(w.of("b")) != 0 {
				t.Errorf("b was started %d times, and %d processes are kept for nothing", started, len(w.of("b")))
			}
		})
	}
	t.Run("what a client of the earlier era left behind decides nothing", func(t *testing.T) {
		w := newWorld(t, Options{})
		w.plan("a", plan{modern: true})
		w.serve(named("a"))
		w.legacy().tools()
		for s := range w.gw.sessions.all {
			s.Close(w.now)
		}
		w.settle()
		has(t, "discover", w.client().modern("1", "server/discover", ""), "supportedVersions")
	})
}

func TestEraOfAMessage(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true})
	w.plan("b", plan{modern: true, only: true})
	w.serve(named("a"), named("b"))
	has(t, "no handshake", w.client().call("1", "a_do"), "initialize comes first")
	has(t, "ping", w.client().ask(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), `"result":{}`)
	has(t, "another version", w.client().ask(strings.Replace(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+modernMeta+`}}`, "2026-07-28", "2027-01-01", 1)), "-32022")
	for _, m := range []string{"ping", "logging/setLevel", "resources/subscribe", "initialize"} {
		has(t, m, w.client().modern("1", m, ""), "-32601")
	}
	for _, m := range []string{"server/discover", "subscriptions/listen"} {
		has(t, m, w.legacy().modern("1", m, ""), "-32601")
	}
	// A server that speaks the modern era only is not shown to clients of the earlier one.
	if diff := cmp.Diff([]string{"a_do"}, w.legacy().tools()); diff != "" {
		t.Error(diff)
	}
}

// Clients of the modern era share a process; what they ask under the same id and token is told apart.
func TestModernClientsShare(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true, tools: []string{"hang"}})
	w.serve(named("a"))
	var calls []*inbox
	for range 2 {
		c := w.client()
		in := &inbox{}
		c.Message(w.now, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_hang",`+strings.Replace(modernMeta, "{", `{"progressToken":"p",`, 1)+`}}`), in)
		w.settle()
		calls = append(calls, in)
	}
	procs := w.of("a")
	if len(procs) != 1 {
		t.Fatalf("%d processes", len(procs))
	}
	p := procs[0]
	var open []message
	for _, m := range p.open {
		if m.Method == "tools/call" {
			open = append(open, m)
		}
	}
	for i, in := range calls {
		p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`, open[i].Params.Meta["progressToken"])
		has(t, "progress", in, `"progressToken":"p"`)
		want(t, "the other", calls[1-i])
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:1","_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, open[0].ID)
	p.answer(open[1], `"two"`)
	want(t, "one", calls[0])
	has(t, "two", calls[1], `{"jsonrpc":"2.0","id":1,"result":"two"}`)
}

// Log messages have nothing in them that says whose they are: only a request that is the only one to ask for them gets any.
func TestModernLogs(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true, tools: []string{"hang"}, uris: []string{"f:/a"}})
	w.serve(named("a"))
	logs := strings.Replace(modernMeta, "{", `{"io.modelcontextprotocol/logLevel":"debug",`, 1)
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a_hang",` + logs + `}}`
	silent, one := w.client().callModern("1", "a_hang", ""), w.client().ask(line)
	p := w.of("a")[0]
	say := func() { p.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`) }
	say()
	want(t, "who did not ask", silent)
	has(t, "who did", one, "notifications/message")
	uri := `"notifications":{"resourceSubscriptions":["f:/a"]},`
	listens := w.client().ask(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + uri + logs + `}}`)
	if m, ok := p.last("subscriptions/listen"); !ok || !strings.Contains(m.Raw, "logLevel") {
		t.Fatalf("nobody listens: %s", m.Raw)
	}
	has(t, "who listens", listens, "acknowledged")
	say()
	has(t, "who did, while another one listens", one, "notifications/message")
	want(t, "who listens", listens)
	two := w.client().ask(line)
	say()
	want(t, "one", one)
	want(t, "two", two)
}

// Several instances share the calls; what one has begun it goes on with, and one that is broken gets nothing.
func TestInstances(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true, tools: []string{"hang"}})
	s := named("a")
	s.Instances = 3
	w.serve(s)
	c := w.client()
	for i := range 6 {
		c.callModern(fmt.Sprint(i), "a_hang", "")
	}
	procs := w.of("a")
	if len(procs) != 3 {
		t.Fatalf("%d processes", len(procs))
	}
	for i, p := range procs {
		if n := p.count("tools/call"); n != 2 {
			t.Errorf("process %d has %d of 6 calls", i, n)
		}
	}
	second := procs[1]
	m, _ := second.last("tools/call")
	second.answer(m, `{"resultType":"input_required","requestState":"s1","inputRequests":{}}`)
	for i := range 3 {
		c.callModern(fmt.Sprintf(`"r%d"`, i), "a_hang", `"requestState":"s1",`)
	}
	if n := second.count("tools/call"); n != 5 {
		t.Errorf("who gave the state out has %d calls", n)
	}
	procs[0].link.phase = failed
	procs[2].link.phase = failed
	before := second.count("tools/call")
	c.callModern("10", "a_hang", "")
	if second.count("tools/call") != before+1 {
		t.Error("a broken instance got the call")
	}
	second.end()
	w.settle()
	if len(w.gw.states) != 0 {
		t.Error("the states of a process that is no more are kept")
	}
}

// subscriptions/listen is one stream, whatever servers are behind it.
func TestListen(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true, uris: []string{"x:1"}})
	w.plan("b", plan{modern: true, uris: []string{"y:1"}})
	w.serve(named("a"), named("b"))
	c := w.client()
	all := c.modern(`"L"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:1","y:1","z:1"]},`)
	has(t, "acknowledged", all, `"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:1","y:1","z:1"]}}`)
	resources := w.client().modern(`7`, "subscriptions/listen", `"notifications":{"resourcesListChanged":true},`)
	has(t, "acknowledged", resources, `"notifications":{"resourcesListChanged":true}}`)
	leg := func(p *proc) message {
		t.Helper()
		for _, m := range p.told {
			if m.Method == "subscriptions/listen" && strings.Contains(m.Raw, "resourceSubscriptions") {
				return m
			}
		}
		t.Fatalf("%s was not asked to listen", p.name)
		return message{}
	}
	a, b := w.of("a")[0], w.of("b")[0]
	if got := string(leg(a).Params.Notifications); got != `{"resourceSubscriptions":["x:1"]}` {
		t.Errorf("a was asked for %s", got)
	}
	update := func(p *proc, uri string) {
		p.say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":%q,"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, uri, leg(p).ID)
	}
	update(b, "y:1")
	want(t, "updated", all, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"y:1","_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}`)

	w.plans["a"].tools = []string{"do", "more"}
	a.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	w.settle()
	w.pass(time.Second)
	want(t, "changed", all, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}`)

	// One server ends its part: the client's stream goes on, and the server is asked again when it is another one.
	a.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, leg(a).ID)
	want(t, "cut", all)
	update(b, "y:1")
	has(t, "the other server", all, "y:1")
	w.serve(changedServer("a", "2"), named("b"))
	w.pass(time.Second)
	a = w.of("a")[0]
	all.lines = nil
	update(a, "x:1")
	has(t, "the new process", all, "x:1")

	c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"L"}}`)
	for _, p := range []*proc{a, b} {
		if m, _ := p.last("notifications/cancelled"); string(m.Params.RequestID) != string(leg(p).ID) {
			t.Errorf("%s was not told that nobody listens: %s", p.name, m.Raw)
		}
	}
	update(a, "x:1")
	want(t, "after the end", all)
	want(t, "who asked for something else", resources)
	if n := len(w.gw.modern.listens); n != 1 {
		t.Errorf("%d listens are kept", n)
	}
}

// A client that leaves before a server has answered the handshake leaves nothing behind there.
func TestListenWhileAServerStarts(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true, uris: []string{"x:1"}})
	w.serve(named("a"))
	w.client().modern("1", "tools/list", "")
	w.plans["a"].mute = true
	w.serve(changedServer("a", "2"))
	c := w.client()
	c.modern("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["x:1"]},`)
	p := w.of("a")[0]
	if len(p.link.waiting) != 1 {
		t.Fatalf("%d wait", len(p.link.waiting))
	}
	c.Close(w.now)
	p.plan.mute = false
	m, _ := p.last("server/discover")
	p.greet(m)
	w.settle()
	if strings.Contains(fmt.Sprint(p.told), "resourceSubscriptions") {
		t.Error("the server listens for nobody")
	}
}

// A client of one message leaves with it: whoever works on it is told.
func TestAClientOfOneMessageLeaves(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{modern: true, tools: []string{"hang"}})
	w.serve(named("a"))
	c := w.client()
	in := c.callModern("1", "a_hang", "")
	other := w.client().callModern("2", "a_hang", "")
	c.Close(w.now)
	w.settle()
	p := w.of("a")[0]
	if n := p.count("notifications/cancelled"); n != 1 {
		t.Errorf("%d cancellations", n)
	}
	for _, m := range p.open {
		if m.Method == "tools/call" {
			p.answer(m, "{}")
		}
	}
	want(t, "gone", in)
	has(t, "other", other, `"id":2`)
}

// A client of the modern era that calls a server which turns out not to speak it is told so.
func TestServerOfTheEarlierEra(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(named("a"))
	has(t, "call", w.client().callModern("1", "a_do", ""), "Unknown tool")
	if len(w.of("a")) != 0 {
		t.Error("a process is kept for nothing")
	}
	has(t, "earlier era", func() *inbox { c := w.legacy(); c.tools(); return c.call("1", "a_do") }(), `"a"`)
}

// Every result that the gateway makes itself says whose it is, in the modern era; a server's says what the server says.
func TestResultsOfTheGatewayNameIt(t *testing.T) {
	w := newWorld(t, Options{Version: "1.2"})
	w.gw.opts.NoTools = false
	w.plan("a", plan{modern: true})
	w.serve(named("a"))
	c := w.client()
	info := `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"outlive","title":"outlive gateway","version":"1.2"}}`
	for _, m := range []string{"server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"} {
		has(t, m, c.modern("1", m, ""), info)
	}
	for _, tool := range []string{toolStatus, toolRestart} {
		has(t, tool, c.modern("2", "tools/call", `"name":"`+tool+`",`), info)
	}
	if in := c.modern("3", "tools/call", `"name":"a_do",`); len(in.lines) != 1 || strings.Contains(in.lines[0], "serverInfo") {
		t.Errorf("the server's result: %q", in.lines)
	}
	l := w.legacy()
	for _, m := range []string{"tools/list", "prompts/list"} {
		if in := l.ask(`{"jsonrpc":"2.0","id":1,"method":"` + m + `"}`); strings.Contains(strings.Join(in.lines, ""), "serverInfo") {
			t.Errorf("legacy %s: %q", m, in.lines)
		}
	}
	listen := c.modern(`"L"`, "subscriptions/listen", `"notifications":{"toolsListChanged":true},`)
	listen.lines = nil
	w.gw.Close(w.now)
	has(t, "the end of listening", listen, `"io.modelcontextprotocol/subscriptionId":"L","io.modelcontextprotocol/serverInfo":{"name":"outlive"`)
}
