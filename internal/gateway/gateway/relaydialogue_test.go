package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// relayClient is one client of a dialogue. In the modern era each of its requests has a connection, and so a session, of its own.
type relayClient struct {
	w       *relay
	name    string // whom the transport has authenticated
	modern  bool
	session *Session // of the legacy era
	others  []*Session
	general inbox
	last    int
	asked   []int // keys of the calls that have asked it
}

const (
	relayCan  = `{"elicitation":{"form":{}}}`
	relayMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + relayCan + `}`
)

// join is a client that can be asked; one of the legacy era has shaken hands.
func (w *relay) join(name string, modern bool) *relayClient {
	c := &relayClient{w: w, name: name, modern: modern}
	if !modern {
		c.session = w.gw.Open(&c.general, nil)
		c.ask("initialize", `"protocolVersion":"2025-11-25","capabilities":`+relayCan+`,"clientInfo":{"name":"c"}`)
		c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

func (c *relayClient) say(line string) {
	c.session.Message(c.w.now, []byte(line), &c.general)
	c.w.settle()
}

// ask makes a request, and gives it some time.
func (c *relayClient) ask(method, params string) *inbox {
	in, s := &inbox{}, c.session
	if c.modern {
		params = strings.TrimPrefix(params+","+relayMeta, ",")
		s = c.w.gw.Open(nil, nil)
		s.principal = c.name
		c.others = append(c.others, s)
	}
	c.last++
	s.Message(c.w.now, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, c.last, method, params), in)
	c.w.pass(3 * time.Second)
	return in
}

// part closes the connections of the client's earlier requests.
func (c *relayClient) part() {
	for _, s := range c.others {
		s.Close(c.w.now)
	}
	c.others = nil
	c.w.settle()
}

// call calls a tool of server a; more are further members of params, each with a comma before it.
func (c *relayClient) call(tool string, key int, more string) *inbox {
	if !c.w.gw.opts.Plain {
		tool = "a_" + tool
	}
	return c.ask("tools/call", fmt.Sprintf(`"name":%q,"arguments":{"key":%d}%s`, tool, key, more))
}

// tools are the names that the client is shown.
func (c *relayClient) tools() []string { return toolsOf(c.w.t, c.ask("tools/list", "")) }

// answers answers what a call has asked, and returns where what follows comes.
func (c *relayClient) answers(in *inbox, tool string) *inbox {
	c.w.pass(time.Second)
	for _, line := range slices.Concat(in.lines, c.general.lines) {
		m := readMessage(c.w.t, line)
		switch {
		case m.Method == "elicitation/create":
			_, from := c.hears(m.Params.Message)
			in.lines = slices.DeleteFunc(in.lines, func(one string) bool { return one == line })
			c.general.lines = slices.DeleteFunc(c.general.lines, func(one string) bool { return one == line })
			c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"to":%q}}`, m.ID, from))
		case strings.Contains(string(m.Result), `"input_required"`):
			in.lines = nil
			return c.round(m, tool)
		}
	}
	return in
}

// hears notes who asks.
func (c *relayClient) hears(message string) (key int, from string) {
	if _, err := fmt.Sscanf(message, "key %d from %s", &key, &from); err != nil {
		c.w.t.Fatalf("who asks %q? %v", message, err)
	}
	c.asked = append(c.asked, key)
	return key, from
}

// round goes on with a call of the modern era that was answered with questions.
func (c *relayClient) round(m relayMessage, tool string) *inbox {
	var result struct {
		RequestState  string
		InputRequests map[string]struct{ Params struct{ Message string } }
	}
	if err := json.Unmarshal(m.Result, &result); err != nil || len(result.InputRequests) != 1 {
		c.w.t.Fatalf("%v: %s", err, m.Result)
	}
	for name, q := range result.InputRequests {
		key, from := c.hears(q.Params.Message)
		return c.call(tool, key, fmt.Sprintf(`,"requestState":%q,"inputResponses":{%q:{"to":%q}}`, result.RequestState, name, from))
	}
	return nil
}

// talk is a call in as many rounds as it takes.
func (c *relayClient) talk(in *inbox, tool string) *inbox {
	for range 5 {
		in = c.answers(in, tool)
	}
	return in
}

// ended fails the test unless a call has one answer, with the text in it, in its client's era.
func (c *relayClient) ended(what string, in *inbox, text string) {
	c.w.t.Helper()
	if len(in.lines) != 1 || !strings.Contains(in.lines[0], text) || strings.Contains(in.lines[0], "resultType") != c.modern {
		c.w.t.Errorf("%s: no single answer with %q in the client's era: %q", what, text, in.lines)
	}
}

// bridgedRelay is a relay before one server, a, that speaks one era and is translated. With plain it is shown as it is, as runs that
// share it see it.
func bridgedRelay(t *testing.T, era mcp.Era, plain bool, instances int) *relay {
	w := newRelay(t, Options{Plain: plain, PoolIdle: time.Minute})
	w.eras["a"] = era
	s := named("a")
	s.Bridge, s.Shared, s.Instances = true, plain, instances
	w.serve(s)
	return w
}

var bothEras = []mcp.Era{mcp.Legacy, mcp.Modern}

// A client hears of a changed list once, also where a bridge stands between it and the server. It does when the server says so, or
// when the next process has another list, and hears nothing where nothing has changed.
func TestListChangedThroughABridge(t *testing.T) {
	for _, client := range bothEras {
		for _, server := range bothEras {
			t.Run(fmt.Sprintf("%s client, %s server", client, server), func(t *testing.T) {
				w := bridgedRelay(t, server, false, 1)
				c := w.join("alice", client == mcp.Modern)
				hears := &c.general
				if c.modern {
					hears = c.ask("subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
				}
				before := c.tools()
				if len(before) == 0 {
					t.Fatal("no tools are shown")
				}
				w.pass(time.Minute)
				told := 0
				expect := func(what string, changes int, tools []string) {
					t.Helper()
					w.pass(time.Minute)
					told += changes
					if n := hears.changes(); n != told {
						t.Errorf("%s: told %d times in all, not %d", what, n, told)
					}
					if diff := cmp.Diff(tools, c.tools()); diff != "" {
						t.Errorf("%s (-want +got):\n%s", what, diff)
					}
				}
				expect("at first", 0, before)
				w.extra["a"] = []string{"more"}
				w.proc("a").changed()
				expect("the server says so", 1, append(slices.Clone(before), "a_more"))
				w.proc("a").changed()
				expect("it says so without a difference", 0, append(slices.Clone(before), "a_more"))
				w.extra["a"] = nil
				w.proc("a").die(1)
				expect("the next process has another list", 1, before)
				w.proc("a").die(1)
				expect("the next process has the same list", 0, before)
			})
		}
	}
}

// A server behind a gateway may come back as one of the other era: its clients keep theirs, and go on. So they do when the change is
// taken back.
func TestEraChangeBehindAGateway(t *testing.T) {
	for _, client := range bothEras {
		for i, first := range bothEras {
			for _, how := range []struct{ planned, plain bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
				t.Run(fmt.Sprintf("%s client, first a %s server, planned %v, as it is %v", client, first, how.planned, how.plain), func(t *testing.T) {
					w := bridgedRelay(t, first, how.plain, 1)
					c := w.join("alice", client == mcp.Modern)
					c.ended("before", c.call("do", 1, ""), "key 1")
					before := c.tools()
					for key, era := range []mcp.Era{bothEras[1-i], first, bothEras[1-i]} {
						w.eras["a"] = era
						if p := w.proc("a"); how.planned {
							p.k.restart()
						} else {
							p.die(1)
						}
						w.pass(10 * time.Second)
						c.ended(fmt.Sprintf("as a %s one", era), c.call("do", key+2, ""), fmt.Sprint("key ", key+2))
						if diff := cmp.Diff(before, c.tools()); diff != "" {
							t.Errorf("the tools of a %s one (-want +got):\n%s", era, diff)
						}
					}
				})
			}
		}
	}
}

// Also where a server has become one that is translated, nobody goes on with what another client was asked.
func TestRoundsOfOthersAfterAnEraChange(t *testing.T) {
	for _, changes := range []bool{false, true} {
		w := bridgedRelay(t, mcp.Legacy, false, 1)
		if changes {
			w.eras["a"] = mcp.Modern
		}
		alice, mallory := w.join("alice", true), w.join("mallory", true)
		alice.ended("before", alice.call("do", 1, ""), "key 1")
		if changes {
			w.eras["a"] = mcp.Legacy
			w.proc("a").die(1)
			w.pass(10 * time.Second)
		}
		in := alice.call("ask", 2, "")
		if len(in.lines) != 1 || !strings.Contains(in.lines[0], "input_required") {
			t.Fatalf("era changes %v: alice is not asked: %q", changes, in.lines)
		}
		stolen := mallory.round(readMessage(t, in.lines[0]), "ask")
		if len(stolen.lines) != 1 || !strings.Contains(stolen.lines[0], "Invalid or expired requestState") {
			t.Errorf("era changes %v: another client goes on with the call: %q", changes, stolen.lines)
		}
		alice.ended(fmt.Sprintf("era changes %v", changes), alice.talk(in, "ask"), "key 2")
	}
}

// Two clients whose calls ask are asked one question each, and each call gets the answer of its own client.
func TestTwoClientsAreAskedOneQuestionEach(t *testing.T) {
	for name, test := range map[string]struct {
		plain          bool
		client, server mcp.Era
	}{
		"of processes of their own":                        {false, mcp.Legacy, mcp.Legacy},
		"of translated processes of their own":             {false, mcp.Legacy, mcp.Modern},
		"of one process":                                   {false, mcp.Modern, mcp.Modern},
		"of one translated process":                        {false, mcp.Modern, mcp.Legacy},
		"of one process that is shown as it is":            {true, mcp.Legacy, mcp.Legacy},
		"of one modern process that is shown as it is":     {true, mcp.Modern, mcp.Modern},
		"of one translated process that is shown as it is": {true, mcp.Modern, mcp.Legacy},
	} {
		t.Run(name, func(t *testing.T) {
			w := bridgedRelay(t, test.server, test.plain, 1)
			alice, bob := w.join("alice", test.client == mcp.Modern), w.join("bob", test.client == mcp.Modern)
			a, b := alice.call("ask", 1, ""), bob.call("ask", 2, "")
			for range 5 {
				b, a = bob.answers(b, "ask"), alice.answers(a, "ask")
			}
			alice.ended("alice", a, "key 1")
			bob.ended("bob", b, "key 2")
			if diff := cmp.Diff([][]int{{1}, {2}}, [][]int{alice.asked, bob.asked}); diff != "" {
				t.Errorf("who was asked (-want +got):\n%s", diff)
			}
			for p := range w.procs {
				if len(p.asks)+len(p.open) > 0 {
					t.Errorf("process %s waits for %d answers, and works on %d calls", p.name(), len(p.asks), len(p.open))
				}
			}
		})
	}
}

// A round that comes over another connection goes on at the process that has asked. Where that is no more the call is begun anew, or
// its client is told that the outcome is unknown.
func TestRoundsOverAnotherConnection(t *testing.T) {
	const lost = "may or may not have taken effect"
	crash := func(w *relay) { w.proc("a").die(1) }
	planned := func(w *relay) { w.proc("a").k.restart() }
	for name, test := range map[string]struct {
		server    mcp.Era
		instances int
		tool      string
		meanwhile func(*relay)
		want      string
		asked     []int
	}{
		"a modern server":                                 {mcp.Modern, 1, "ask", func(*relay) {}, "key 2", []int{2}},
		"one of two modern processes":                     {mcp.Modern, 2, "ask", func(*relay) {}, "key 2", []int{2}},
		"a modern server that crashes":                    {mcp.Modern, 1, "ask", crash, "key 2", []int{2, 2}},
		"a modern server that is replaced":                {mcp.Modern, 1, "ask", planned, "key 2", []int{2, 2}},
		"a legacy server":                                 {mcp.Legacy, 1, "ask", func(*relay) {}, "key 2", []int{2}},
		"one of two legacy processes":                     {mcp.Legacy, 2, "ask", func(*relay) {}, "key 2", []int{2}},
		"a legacy server that crashes":                    {mcp.Legacy, 1, "ask", crash, lost, []int{2}},
		"a legacy server that crashes, a tool that reads": {mcp.Legacy, 1, "see", crash, "key 2", []int{2, 2}},
		"a legacy server that is replaced":                {mcp.Legacy, 1, "ask", planned, "key 2", []int{2}},
	} {
		t.Run(name, func(t *testing.T) {
			w := bridgedRelay(t, test.server, false, test.instances)
			c := w.join("alice", true)
			c.ended("before", c.call("do", 1, ""), "key 1")
			c.tools()
			in := c.call(test.tool, 2, "")
			c.part()
			test.meanwhile(w)
			w.pass(10 * time.Second)
			in = c.answers(in, test.tool)
			c.part()
			c.ended("in the end", c.talk(in, test.tool), test.want)
			if diff := cmp.Diff(test.asked, c.asked); diff != "" {
				t.Errorf("it was asked for the calls (-want +got):\n%s", diff)
			}
		})
	}
}
