package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// world is a World without processes: its servers are scripted, and time is what the test says.
type world struct {
	t       failer
	gw      *Gateway
	now     time.Time
	plans   map[string]*plan
	procs   []*proc  // every one there ever was, in order
	late    []func() // what servers do once nobody is inside a call of theirs
	renewed []string
	views   []View // the configured ones, for a model
}

// failer is what a world needs of a test: *testing.T, or rapid's.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// plan is how the processes of one server behave.
type plan struct {
	sync   bool // they answer while they are being told
	modern bool // they speak the modern era, too
	only   bool // and nothing else
	bridge bool // what keeps them translates for who speaks another era
	mute   bool // they answer a handshake when the test says so
	refuse int  // handshakes that are refused before one is taken
	unsure int  // those of the modern era that are refused for their version, which is the right one
	caps   string
	tools  []string
	uris   []string
	slow   bool     // lists are answered when the test says so
	broken int      // tools/list requests that get an error before one is answered
	pages  bool     // one tool on each page
	bad    bool     // of which those behind the first are refused
	one    bool     // of which those behind the first are never answered
	again  bool     // of which the last leads to the first
	silent []string // methods that are not answered
	about  string
	schema string   // raw, of every tool's input; "": none
	meta   string   // raw _meta of every tool; "": none
	extra  []string // tools for clients that have declared sampling
}

// proc is one kept server.
type proc struct {
	world  *world
	plan   *plan
	link   *Link
	name   string
	told   []message // in order
	open   []message // what is not answered yet
	closed bool
	ended  bool
	listed bool // it has answered for its tools

	translates bool // what keeps it does, for the era that was greeted last
}

// message is a line as the other side reads it.
type message struct {
	Raw    string          `json:"-"`
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params struct {
		Name, URI, Cursor, Level string
		RequestID                json.RawMessage
		ProgressToken            json.RawMessage
		Reason                   string
		Meta                     map[string]json.RawMessage `json:"_meta"`
		Notifications            json.RawMessage
		RequestState             string
	} `json:"params"`
}

func parse(t failer, line string) message {
	m := message{Raw: line}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("no message: %q: %v", line, err)
	}
	return m
}

func newWorld(t failer, opts Options) *world {
	w := &world{t: t, now: time.Unix(1_700_000_000, 0), plans: map[string]*plan{}}
	if opts.Sink == nil {
		opts.Sink = event.Tee{}
	}
	opts.NoTools = true
	w.gw = New(opts, w)
	return w
}

// serve configures servers, by name, as they are planned.
func (w *world) serve(servers ...Server) {
	w.gw.SetServers(w.now, servers)
	w.settle()
}

// named is a Server with nothing but a name.
func named(name string) Server { return Server{Catalog: catalog.Server{Name: name}} }

func (w *world) plan(name string, p plan) {
	if p.tools == nil {
		p.tools = []string{"do"}
	}
	if p.caps == "" {
		p.caps = `{"tools":{},"logging":{},"resources":{"subscribe":true}}`
	}
	w.plans[name] = &p
}

func (w *world) Now() time.Time { return w.now }
func (w *world) Stand(to *Session, shown func(string) bool) string {
	var names []string
	for _, p := range w.procs {
		if !p.closed && !p.ended && shown(p.name) && p.link.scope.isKnownTo(to) {
			names = append(names, p.name)
		}
	}
	slices.Sort(names)
	return "fine: " + strings.Join(names, " ")
}
func (w *world) Renew(_ *Session, server, _ string) { w.renewed = append(w.renewed, server) }
func (w *world) Connect(l *Link) Upstream {
	if w.plans[l.Name()] == nil {
		w.plan(l.Name(), plan{})
	}
	p := &proc{world: w, plan: w.plans[l.Name()], link: l, name: l.Name()}
	w.procs = append(w.procs, p)
	return p
}

// of returns the processes of a server that run.
func (w *world) of(name string) (all []*proc) {
	for _, p := range w.procs {
		if p.name == name && !p.closed && !p.ended {
			all = append(all, p)
		}
	}
	return all
}

// settle lets everything happen that needs no time.
func (w *world) settle() {
	for i := 0; len(w.late) > 0 || w.gw.waiting(); i++ {
		if i > 100_000 {
			w.t.Fatalf("it goes on for ever")
		}
		w.gw.flush()
		if len(w.late) > 0 {
			next := w.late[0]
			w.late = w.late[1:]
			next()
		}
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	end := w.now.Add(d)
	for i := 0; ; i++ {
		at := w.gw.Deadline()
		if at.IsZero() || at.After(end) {
			break
		}
		if i > 10_000 {
			w.t.Fatalf("the gateway ticks without end")
		}
		if at.After(w.now) {
			w.now = at
		}
		w.gw.Tick(w.now)
		w.settle()
	}
	w.now = end
}

// Say implements Upstream.
func (p *proc) Say(line []byte) {
	if p.closed || p.ended {
		p.world.t.Errorf("%s was told something after its end: %s", p.name, line)
		return
	}
	m := parse(p.world.t, string(line))
	p.told = append(p.told, m)
	if p.plan.sync {
		p.handle(m)
		return
	}
	p.world.late = append(p.world.late, func() {
		if !p.ended {
			p.handle(m)
		}
	})
}

// Translates implements Upstream.
func (p *proc) Translates() bool { return p.translates }

// Close implements Upstream.
func (p *proc) Close() {
	if p.closed {
		p.world.t.Errorf("%s was closed twice", p.name)
	}
	p.closed = true
	p.world.late = append(p.world.late, p.end)
}

// end is what comes of a process in the end.
func (p *proc) end() {
	if !p.ended {
		p.ended = true
		p.link.Finished(p.world.now)
	}
}

// say is the process saying something.
func (p *proc) say(format string, args ...any) {
	p.link.Send(fmt.Appendf(nil, format, args...))
}

func (p *proc) answer(m message, result string) {
	p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (p *proc) fail(m message, code int, text string) {
	p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}

// handle is what a process does with a message.
func (p *proc) handle(m message) {
	if slices.Contains(p.plan.silent, m.Method) {
		p.open = append(p.open, m)
		return
	}
	switch m.Method {
	case "initialize", "server/discover":
		p.greet(m)
	case "tools/list":
		switch {
		case p.plan.slow, p.plan.one && m.Params.Cursor != "":
			p.open = append(p.open, m)
		case p.plan.broken > 0:
			p.plan.broken--
			p.listed = true
			p.fail(m, -32603, "not now")
		default:
			p.listTools(m)
		}
	case "resources/list":
		p.answer(m, list("resources", "uri", p.plan.uris))
	case "resources/templates/list":
		p.answer(m, `{"resourceTemplates":[]}`)
	case "resources/read":
		p.answer(m, fmt.Sprintf(`{"contents":[{"uri":%q,"text":"%s"},{"uri":"ui://view/part","text":""}]}`, m.Params.URI, p.name))
	case "prompts/list":
		p.answer(m, `{"prompts":[]}`)
	case "tools/call":
		if m.Params.Name == "do" {
			p.answer(m, fmt.Sprintf(`{"content":[{"type":"text","text":"%s"}]}`, p.name))
			return
		}
		p.open = append(p.open, m)
	case "subscriptions/listen":
		// What clients listen for waits in the backend below.
		if own := strings.Contains(m.Raw, "toolsListChanged"); own && !p.listed && !p.link.server.Lazy && p.link.lists.lacking() == "" {
			p.world.t.Errorf("%s was asked for a stream before it has shown its tools: %s", p.name, m.Raw)
		}
		p.open = append(p.open, m)
	default:
		if m.ID != nil && m.Method != "" {
			p.answer(m, "{}")
		}
	}
}

func (p *proc) greet(m message) {
	modern := m.Method == "server/discover"
	p.translates = p.plan.bridge && (modern && !p.plan.modern && p.link.Needed() || !modern && p.plan.only)
	switch {
	case p.plan.mute:
		p.open = append(p.open, m)
	case modern && p.plan.unsure > 0:
		p.plan.unsure--
		p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"once more","data":{"supported":["2026-07-28"]}}}`, m.ID)
	case modern && !p.plan.modern && !p.translates:
		p.fail(m, -32601, "Method not found")
	case !modern && p.plan.only && !p.translates:
		p.fail(m, -32022, "Unsupported protocol version")
	case p.plan.refuse > 0:
		p.plan.refuse--
		p.fail(m, -32603, "the server failed to start (exit status 3; 3 starts tried)\nlast stderr lines:\nno such database")
	case modern:
		p.answer(m, `{"supportedVersions":["2026-07-28"],"capabilities":`+p.plan.caps+`}`)
	default:
		p.answer(m, fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"instructions":%q}`, p.plan.caps, p.plan.about))
	}
}

func (p *proc) listTools(m message) {
	p.listed = true
	if p.plan.bad && m.Params.Cursor != "" {
		p.fail(m, -32602, "Invalid cursor")
		return
	}
	tools, next := p.plan.tools, ""
	if greeting, ok := p.last("initialize"); ok && strings.Contains(greeting.Raw, `"sampling"`) {
		tools = append(slices.Clone(tools), p.plan.extra...)
	}
	if p.plan.pages {
		at := 0
		_, _ = fmt.Sscan(m.Params.Cursor, &at) // none is the first page
		tools = tools[at : at+1]
		switch {
		case at+1 == len(p.plan.tools) && p.plan.again:
			next = `,"nextCursor":"1"`
		case at+1 < len(p.plan.tools):
			next = fmt.Sprintf(`,"nextCursor":"%d"`, at+1)
		}
	}
	text := list("tools", "name", tools)
	if p.plan.schema != "" {
		text = strings.ReplaceAll(text, `"}`, `","inputSchema":`+p.plan.schema+`}`)
	}
	if p.plan.meta != "" {
		text = strings.ReplaceAll(text, `"}`, `","_meta":`+p.plan.meta+`}`)
	}
	p.answer(m, strings.TrimSuffix(text, "}")+next+"}")
}

func list(member, key string, names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = fmt.Sprintf(`{"%s":%q}`, key, name)
	}
	return `{"` + member + `":[` + strings.Join(all, ",") + `]}`
}

// last is the latest message of a method that the process was told.
func (p *proc) last(method string) (m message, ok bool) {
	for _, one := range slices.Backward(p.told) {
		if one.Method == method {
			return one, true
		}
	}
	return message{}, false
}

func (p *proc) count(method string) (n int) {
	for _, one := range p.told {
		if one.Method == method {
			n++
		}
	}
	return n
}

// inbox is a Stream that keeps what it gets.
type inbox struct {
	lines     []string
	withdrawn []string // ids of requests that get no answer
}

// Withdraw notes a request that gets no answer, as the stream of an HTTP request does.
func (b *inbox) Withdraw(id string) { b.withdrawn = append(b.withdrawn, id) }

// Send implements Stream.
func (b *inbox) Send(line []byte) { b.lines = append(b.lines, string(line)) }

// client is one client, over HTTP: what belongs to a request comes with its answer, the rest to general.
type client struct {
	*Session
	world   *world
	general *inbox
}

func (w *world) client() *client {
	c := &client{world: w, general: &inbox{}}
	c.Session = w.gw.Open(c.general, nil)
	return c
}

// legacy is a client that has shaken hands.
func (w *world) legacy() *client { return w.can("{}") }

// can is a client that has shaken hands with these raw capabilities.
func (w *world) can(capabilities string) *client {
	c := w.client()
	c.ask(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"c"}}}`)
	c.ask(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// wake has the client's processes started: a session has none before it wants something of them.
func (c *client) wake() *client {
	c.ask(`{"jsonrpc":"2.0","id":"w","method":"prompts/list"}`)
	return c
}

// ask says something and returns what comes back, also later.
func (c *client) ask(line string) *inbox {
	in := &inbox{}
	c.Message(c.world.now, []byte(line), in)
	c.world.settle()
	return in
}

// call calls a tool.
func (c *client) call(id, tool string) *inbox {
	return c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q}}`, id, tool))
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"m"},"io.modelcontextprotocol/clientCapabilities":{}}`

// modernCall is a request of the modern era; more are further members of params, each ending in a comma.
func (c *client) modern(id, method, more string) *inbox {
	return c.ask(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s%s}}`, id, method, more, modernMeta))
}

// tools are the names a client of the legacy era is shown; nil: it got no list.
func (c *client) tools() []string {
	return toolsOf(c.world.t, c.ask(`{"jsonrpc":"2.0","id":"l","method":"tools/list"}`))
}

func toolsOf(t failer, in *inbox) []string {
	if len(in.lines) != 1 {
		return nil
	}
	var page struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(parse(t, in.lines[0]).Result, &page); err != nil {
		return nil
	}
	all := []string{}
	for _, tool := range page.Tools {
		all = append(all, tool.Name)
	}
	return all
}

// changes are how many notifications of a changed list of tools came.
func (b *inbox) changes() (n int) {
	for _, line := range b.lines {
		if strings.Contains(line, "notifications/tools/list_changed") {
			n++
		}
	}
	return n
}
