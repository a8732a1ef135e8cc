package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// model is a gateway with clients and servers that do what they like, and what every client may expect of it.
type model struct {
	*world
	clients []*modelClient
	config  []Server
	lastID  int
	digest  int
}

// modelClient is one client with what it has asked.
type modelClient struct {
	*client
	modern bool
	left   bool
	asked  []*asked
	saw    map[string]bool // tools that it was shown, or told of, last; nil: none
	kept   []byte          // its record; nil: none
}

// asked is one request.
type asked struct {
	inbox
	of     *modelClient
	id     string // raw
	method string
	over   bool            // it was cancelled, or its client has left: no answer any more
	heeds  map[string]bool // tools that a listen was told of last; nil: it is not acknowledged
}

// Send implements Stream: an answer is the request's own, and there is one.
func (a *asked) Send(line []byte) {
	a.inbox.Send(line)
	m := parse(a.of.world.t, string(line))
	if a.over {
		a.of.world.t.Fatalf("%s %s is over and gets %s", a.method, a.id, line)
	}
	if m.Method == "" && string(m.ID) != a.id {
		a.of.world.t.Fatalf("%s %s gets the answer %s", a.method, a.id, line)
	}
	if a.method == "tools/list" && m.Result != nil {
		a.of.saw = map[string]bool{}
		for _, name := range toolsOf(a.of.world.t, &a.inbox) {
			a.of.saw[name] = true
		}
	}
	if a.method == "subscriptions/listen" {
		a.heed(string(line))
	}
}

// heed checks what a listen is told: as with told.
func (a *asked) heed(line string) {
	now := a.of.shown()
	switch {
	case strings.Contains(line, "subscriptions/acknowledged"):
		a.heeds = now
	case strings.Contains(line, "tools/list_changed"):
		if a.heeds == nil || cmp.Equal(a.heeds, now) {
			a.of.world.t.Fatalf("needless list_changed: the listen was told of %v, there are %v", a.heeds, now)
		}
		a.heeds = now
	}
}

// answers counts what ended the request.
func (a *asked) answers() (n int) {
	for _, line := range a.lines {
		if m := parse(a.of.world.t, line); m.Method == "" {
			n++
		}
	}
	return n
}

// told checks a message that belongs to no request: a list has changed when, and only when, it is another one than was shown.
type told struct{ of *modelClient }

// Send implements Stream.
func (to told) Send(line []byte) {
	c := to.of
	if c.left {
		c.world.t.Fatalf("a client that has left gets %s", line)
	}
	if !strings.Contains(string(line), "tools/list_changed") {
		return
	}
	now := c.shown()
	if c.saw == nil || cmp.Equal(c.saw, now) {
		c.world.t.Fatalf("needless list_changed: it saw %v, there are %v", c.saw, now)
	}
	c.saw = now
}

// shown are the tools that the client would find.
func (c *modelClient) shown() map[string]bool {
	all := map[string]bool{}
	page, _ := c.Session.shown().Page(mcp.Tools, nil, 0) // it begins at no cursor, so that none can be wrong
	items, _ := catalog.Items(mcp.Tools, page)
	for _, item := range items {
		all[item.Own()] = true
	}
	return all
}

// of leaves out the tools of servers of which nothing can be known yet: the client goes on from a record.
func (c *modelClient) of(tools map[string]bool) map[string]bool {
	if c.before[mcp.Tools] == nil {
		return tools
	}
	known := map[string]bool{}
	for name := range tools {
		i := slices.IndexFunc(c.gw.servers, func(s *server) bool { return s.Catalog.Name == name[:1] })
		if i < 0 || !c.has(c.gw.servers[i]) || c.own.knows(c.gw.servers[i]) {
			known[name] = true
		}
	}
	return known
}

func (m *model) open(modern bool, view string) {
	c := &modelClient{modern: modern, client: &client{world: m.world}}
	m.begin(c, view)
	m.clients = append(m.clients, c)
	if !modern {
		m.send(c, "initialize", `"protocolVersion":"2025-11-25","capabilities":{}`)
	}
}

// begin opens the client's session.
func (m *model) begin(c *modelClient, view string) {
	c.Session = m.gw.Open(told{c}, nil)
	c.Session.view = view
	c.keep = func(record []byte) { c.kept = record }
}

// goOn lets the client's session end here and go on from its record, as at another gateway.
func (m *model) goOn(c *modelClient) {
	if c.kept == nil {
		return
	}
	for _, a := range c.asked {
		a.over = true
	}
	c.Close(m.now)
	m.begin(c, c.Session.view)
	resume(c.Session, m.now, must(readRecord(c.kept)))
}

// send makes a request.
func (m *model) send(c *modelClient, method, params string) *asked {
	m.lastID++
	id := fmt.Sprint(m.lastID)
	switch m.lastID % 4 {
	case 1:
		id = `"` + id + `"`
	case 2:
		id += ".0"
	}
	if c.modern {
		params = strings.TrimPrefix(params+","+modernMeta, ",")
	}
	a := &asked{of: c, id: id, method: method}
	c.asked = append(c.asked, a)
	if method == "initialize" {
		for _, old := range c.asked {
			old.method += " of an earlier session"
		}
		a.method, c.saw = method, nil
	}
	c.Message(m.now, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, id, method, params), a)
	return a
}

func (m *model) pick(t *rapid.T) *modelClient {
	var here []*modelClient
	for _, c := range m.clients {
		if !c.left {
			here = append(here, c)
		}
	}
	if len(here) == 0 {
		t.Skip("nobody is there")
	}
	return rapid.SampledFrom(here).Draw(t, "client")
}

func (m *model) running(t *rapid.T) *proc {
	var all []*proc
	for _, p := range m.procs {
		if !p.ended {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		t.Skip("nothing runs")
	}
	return rapid.SampledFrom(all).Draw(t, "process")
}

var modelTools = []string{"do", "hang", "x", "y"}

func (m *model) reload(t *rapid.T) {
	var next []Server
	for _, name := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "order") {
		old := slices.IndexFunc(m.config, func(s Server) bool { return s.Catalog.Name == name })
		switch rapid.SampledFrom([]string{"same", "same", "other", "none"}).Draw(t, name) {
		case "same":
			if old >= 0 {
				next = append(next, m.config[old])
			}
		case "other":
			m.digest++
			s := named(name)
			s.Digest, s.Shared, s.Bridge = fmt.Sprint(m.digest), rapid.Bool().Draw(t, "shared"), m.plans[name].bridge
			s.Instances, s.Lazy = rapid.IntRange(0, 2).Draw(t, "instances"), rapid.Bool().Draw(t, "lazy")
			next = append(next, s)
		}
	}
	m.config = next
	m.gw.SetServers(m.now, next, m.someViews(t)...)
}

// someViews are what clients with a view see from now on: v changes, w stays or is not there.
func (m *model) someViews(t *rapid.T) []View {
	v := View{Name: "v", Servers: map[string]catalog.Filter{}}
	for _, name := range []string{"a", "b", "c"} {
		if rapid.Bool().Draw(t, "v has "+name) {
			v.Servers[name] = catalog.Filter{Deny: rapid.SampledFrom([][]string{nil, {"x"}, {"*"}}).Draw(t, "v denies "+name)}
		}
	}
	m.views = []View{v}
	if rapid.IntRange(0, 3).Draw(t, "w") > 0 {
		m.views = append(m.views, View{Name: "w", Servers: map[string]catalog.Filter{"a": {Allow: []string{"do"}}, "c": {}}})
	}
	return m.views
}

// actions are everything that can happen.
func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"client comes": func(t *rapid.T) {
			if len(m.clients) < 6 {
				m.open(rapid.Bool().Draw(t, "modern"), rapid.SampledFrom([]string{"", "v", "w"}).Draw(t, "view"))
			}
		},
		"client leaves": func(t *rapid.T) {
			c := m.pick(t)
			c.left = true
			for _, a := range c.asked {
				a.over = true
			}
			c.Close(m.now)
		},
		"client is away": func(t *rapid.T) { m.pick(t).Release(m.now) },
		"client goes on": func(t *rapid.T) { m.goOn(m.pick(t)) },
		"call": func(t *rapid.T) {
			tool := rapid.SampledFrom([]string{"a_", "b_", "c_"}).Draw(t, "server") + rapid.SampledFrom(modelTools).Draw(t, "tool")
			m.send(m.pick(t), "tools/call", fmt.Sprintf(`"name":%q`, tool))
		},
		"ask": func(t *rapid.T) {
			what := rapid.SampledFrom([][2]string{{"tools/list", ""}, {"tools/list", ""}, {"prompts/list", ""}, {"ping", ""},
				{"logging/setLevel", `"level":"info"`}, {"resources/subscribe", `"uri":"x:1"`}, {"resources/unsubscribe", `"uri":"x:1"`},
				{"resources/read", `"uri":"x:1"`}, {"server/discover", ""}, {"other/method", ""}, {"completion/complete", `"ref":{"type":"ref/resource","uri":"x:1"}`},
				{"subscriptions/listen", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:1","x:2"]}`}}).Draw(t, "what")
			m.send(m.pick(t), what[0], what[1])
		},
		"begin anew": func(t *rapid.T) {
			if c := m.pick(t); !c.modern {
				m.send(c, "initialize", `"protocolVersion":"2025-06-18","capabilities":{}`)
			}
		},
		"cancel": func(t *rapid.T) {
			c := m.pick(t)
			if len(c.asked) == 0 {
				return
			}
			a := rapid.SampledFrom(c.asked).Draw(t, "request")
			a.over = a.over || a.answers() == 0 && !strings.HasPrefix(a.method, "initialize")
			c.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + a.id + `}}`)
		},
		"server answers": func(t *rapid.T) {
			p := m.running(t)
			if len(p.open) == 0 {
				return
			}
			i := rapid.IntRange(0, len(p.open)-1).Draw(t, "which")
			p.answerOpen(i)
		},
		"server asks": func(t *rapid.T) {
			m.running(t).say(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{}}`, rapid.IntRange(0, 2).Draw(t, "id"))
		},
		"server withdraws": func(t *rapid.T) {
			m.running(t).say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, rapid.IntRange(0, 60).Draw(t, "id"))
		},
		"server changes": func(t *rapid.T) {
			p := m.running(t)
			p.plan.tools = rapid.SliceOfNDistinct(rapid.SampledFrom(modelTools), 0, 4, rapid.ID[string]).Draw(t, "tools")
			p.plan.slow, p.plan.mute = rapid.Bool().Draw(t, "slow"), rapid.Bool().Draw(t, "mute")
			p.plan.broken, p.plan.refuse = rapid.IntRange(0, 1).Draw(t, "broken"), rapid.IntRange(0, 2).Draw(t, "refuse")
			p.plan.sync = rapid.Bool().Draw(t, "sync")
			p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		},
		"server ends": func(t *rapid.T) { m.running(t).end() },
		"reload":      m.reload,
		"time passes": func(t *rapid.T) {
			m.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, 150 * time.Millisecond, 2 * time.Second, 40 * time.Second}).Draw(t, "time"))
		},
		"something happens": func(*rapid.T) {
			if len(m.late) > 0 {
				next := m.late[0]
				m.late = m.late[1:]
				next()
				m.gw.flush()
			}
		},
		"all that can happen does": func(*rapid.T) { m.settle() },
		"":                         func(*rapid.T) { m.check() },
	}
}

func (p *proc) answerOpen(i int) {
	one := p.open[i]
	p.open = slices.Delete(p.open, i, i+1)
	switch one.Method {
	case "initialize", "server/discover":
		p.plan.mute = false
		p.greet(one)
	case "tools/list":
		p.listTools(one)
	default:
		p.answer(one, "{}")
	}
}

// check is what holds at any time.
func (m *model) check() {
	for _, c := range m.clients {
		for _, a := range c.asked {
			if n := a.answers(); n > 1 {
				m.t.Fatalf("%s %s has %d answers: %q", a.method, a.id, n, a.lines)
			}
		}
		if c.left {
			continue
		}
		for name := range c.shown() {
			if server := name[:1]; !c.mayUse(server, name[2:]) {
				m.t.Fatalf("a client of the view %s is shown %s", c.Session.view, name)
			}
		}
		if c.own != nil {
			for l := range c.own.each {
				if l.phase != retired && !c.mayUse(l.Name(), "") {
					m.t.Fatalf("a client of the view %s keeps %s", c.Session.view, l.Name())
				}
			}
		}
	}
}

// mayUse reports whether the client's view has the server, and if it is named the tool.
func (c *modelClient) mayUse(server, tool string) bool {
	if c.Session.view == "" {
		return true
	}
	i := slices.IndexFunc(c.world.views, func(v View) bool { return v.Name == c.Session.view })
	if i < 0 {
		return false
	}
	filter, has := c.world.views[i].Servers[server]
	return has && (tool == "" || !slices.Contains(filter.Deny, tool) && !slices.Contains(filter.Deny, "*") &&
		(filter.Allow == nil || slices.Contains(filter.Allow, tool)))
}

// finish lets everybody do what they are to do, and looks at what is left.
func (m *model) finish() {
	for _, p := range m.plans {
		p.slow, p.mute, p.broken, p.refuse = false, false, 0, 0
	}
	for range 20 {
		m.settle()
		for _, p := range m.procs {
			for !p.ended && len(p.open) > 0 {
				p.answerOpen(0)
			}
		}
		m.pass(time.Minute)
	}
	for _, c := range m.clients {
		for _, a := range c.asked {
			listens := a.method == "subscriptions/listen" && c.modern
			if n := a.answers(); !a.over && n != 1 && !listens {
				m.t.Fatalf("%s %s has %d answers: %q", a.method, a.id, n, a.lines)
			}
			if now := c.shown(); listens && !a.over && a.answers() == 0 && !cmp.Equal(a.heeds, now) {
				m.t.Fatalf("a listen was not told: it knows of %v, there are %v", a.heeds, now)
			}
		}
		if c.saw != nil && !c.left && !c.modern && !cmp.Equal(c.of(c.saw), c.of(c.shown())) {
			m.t.Fatalf("a client was not told: it saw %v, there are %v", c.saw, c.shown())
		}
	}
	for _, c := range m.clients {
		c.left = true
		for _, a := range c.asked {
			a.over = true
		}
		c.Close(m.now)
	}
	m.settle()
	m.empty()
	m.gw.Close(m.now)
	m.settle()
	for i, p := range m.procs {
		if !p.ended {
			m.t.Fatalf("process %d, of %s, still runs", i, p.name)
		}
	}
}

// empty fails if something of clients that have left is kept.
func (m *model) empty() {
	if m.gw.sessions.first != nil || m.gw.sessions.last != nil || len(m.gw.modern.listens)+len(m.gw.outbox) > 0 {
		m.t.Fatalf("sessions, listens or messages are kept")
	}
	for _, p := range m.procs {
		l := p.link
		if l.scope.owner != nil && !p.ended {
			m.t.Fatalf("a process of %s, of a client that has left, still runs", p.name)
		}
		if l.load()+len(l.asks()) > 0 {
			m.t.Fatalf("%s: %d calls, %d waiting, %d asks are kept", p.name, l.busy(), len(l.waiting), len(l.asks()))
		}
		for _, e := range l.calls {
			if e.session != nil {
				m.t.Fatalf("%s still works on %d of a client that has left", p.name, e.method)
			}
		}
	}
}

// Whatever clients and servers do: every request gets exactly one answer, under its id, or none if it was cancelled; a
// client is told of a list when it has changed for that client, and sees and keeps only what its view has; and nothing is
// left of those who have left.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{}
		m.world = newWorld(t, Options{})
		bridged := map[string]bool{}
		for _, name := range []string{"a", "b", "c"} {
			modern := rapid.IntRange(0, 3).Draw(t, name)
			bridged[name] = rapid.Bool().Draw(t, name+" is bridged")
			m.plan(name, plan{modern: modern > 0, only: modern == 3, bridge: bridged[name], uris: []string{"x:1"}, tools: []string{"do", "hang"}})
		}
		m.config = []Server{named("a"), {Catalog: catalog.Server{Name: "b"}, Shared: true}, named("c")}
		for i := range m.config {
			m.config[i].Bridge = bridged[m.config[i].Catalog.Name]
		}
		m.gw.SetServers(m.now, m.config, m.someViews(t)...)
		t.Repeat(m.actions())
		m.finish()
	})
}
