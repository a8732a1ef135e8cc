package gateway

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// relayModel is a relay whose clients and processes do what they like, and what every client may expect of it. It has real backends,
// unlike the gateway's own model (model_test.go), and several clients, unlike that of a backend.
type relayModel struct {
	*relay
	peers   []*relayPeer
	calls   map[int]*relayCall // by key
	eraOf   []bool             // which clients come: of the modern era or not
	servers []string
	seen    map[string]int // what has happened in all histories
}

// relayKinds are what a history is of; a third each.
var relayKinds = []string{"one era", "translated", "several clients before one server"}

// newRelayModel draws servers of a kind.
func newRelayModel(t *rapid.T, seen map[string]int) *relayModel {
	m := &relayModel{calls: map[int]*relayCall{}, seen: seen, eraOf: []bool{false, true}, servers: []string{"a", "b"}}
	kind := rapid.SampledFrom(relayKinds).Draw(t, "kind")
	m.relay = newRelay(t, Options{Plain: kind == relayKinds[2], PoolIdle: time.Minute})
	m.counts, m.spares = rapid.Bool().Draw(t, "counts"), rapid.IntRange(0, 1).Draw(t, "spares")
	if rapid.Bool().Draw(t, "remembers") {
		m.known = map[string]backend.Knowledge{}
	}
	m.begun = m.begins
	a, b := named("a"), named("b")
	switch kind {
	case "one era":
		era := rapid.SampledFrom(bothEras).Draw(t, "era")
		m.eraOf = []bool{era == mcp.Modern}
		for _, name := range m.servers {
			if rapid.Bool().Draw(t, name+" speaks no other") {
				m.eras[name] = era
			}
		}
	case "translated":
		m.eras["a"], m.eras["b"] = mcp.Legacy, mcp.Modern
		a.Bridge, b.Bridge = true, true
	default:
		m.eras["a"] = rapid.SampledFrom([]mcp.Era{mcp.EraUnknown, mcp.Legacy, mcp.Modern}).Draw(t, "era")
		m.servers, a.Bridge, a.Shared = m.servers[:1], true, true
		m.serve(a)
		return m
	}
	for _, s := range []*Server{&a, &b} {
		s.Shared, s.Instances = rapid.Bool().Draw(t, "shared"), rapid.IntRange(0, 2).Draw(t, "instances")
	}
	m.serve(a, b)
	return m
}

// begins notes that a process has begun a round of a call. What must not be repeated is not begun twice.
func (m *relayModel) begins(p *relayProc, msg relayMessage) {
	key := msg.Params.Arguments.Key
	c := m.calls[key]
	if c == nil || c.tool != msg.Params.Name {
		m.t.Fatalf("process %s is given call %d of %s, which nobody makes", p.name(), key, msg.Params.Name)
	}
	if c.begun++; c.begun > 1 && c.tool == "bump" || c.begun > 3 {
		m.t.Fatalf("call %d of %s was begun %d times, the last time by process %s", key, c.tool, c.begun, p.name())
	}
}

// comes is another client.
func (m *relayModel) comes(modern bool) {
	p := &relayPeer{m: m, name: fmt.Sprint("client", len(m.peers)), modern: modern}
	m.peers = append(m.peers, p)
	if modern {
		return
	}
	p.session = m.gw.Open(relayGeneral{p}, nil)
	p.send(&relayCall{peer: p, method: "initialize", params: `"protocolVersion":"2025-11-25","capabilities":` + relayCan + `,"clientInfo":{"name":"c"}`}, false)
	p.session.Message(m.now, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), relayGeneral{p})
}

// here are the clients that have not left.
func (m *relayModel) here() []*relayPeer {
	return slices.DeleteFunc(slices.Clone(m.peers), func(p *relayPeer) bool { return p.left })
}

func anyOf[T any](t *rapid.T, what string, all []T) T {
	if len(all) == 0 {
		t.Skip("no " + what)
	}
	return rapid.SampledFrom(all).Draw(t, what)
}

// call has a client call a tool.
func (m *relayModel) call(t *rapid.T) {
	p := anyOf(t, "client", m.here())
	c := &relayCall{peer: p, key: len(m.calls) + 1, method: "tools/call", tool: rapid.SampledFrom([]string{"bump", "bump", "look", "set"}).Draw(t, "tool")}
	m.calls[c.key] = c
	name := c.tool
	if server := rapid.SampledFrom(m.servers).Draw(t, "server"); !m.gw.opts.Plain {
		name = server + "_" + name
	}
	c.params = fmt.Sprintf(`"name":%q,"arguments":{"key":%d}`, name, c.key)
	p.send(c, rapid.Bool().Draw(t, "progress"))
}

// process is one that runs and that has something, such as lines to read.
func (m *relayModel) process(t *rapid.T, has func(*relayProc) bool) *relayProc {
	return anyOf(t, "process", slices.DeleteFunc(slices.Collect(m.procs), func(p *relayProc) bool { return !has(p) }))
}

func (p *relayProc) isThere() bool  { return true }
func (p *relayProc) hasLines() bool { return len(p.pipe) > 0 }
func (p *relayProc) works() bool    { return len(p.open) > 0 }

// run is a call that some process works on.
func (m *relayModel) run(t *rapid.T) (*relayProc, *relayRun) {
	p := m.process(t, (*relayProc).works)
	return p, anyOf(t, "call", p.open)
}

// ends is a call that some process may answer now.
func (m *relayModel) ends(t *rapid.T) (*relayProc, *relayRun) {
	ending := func(p *relayProc) []*relayRun {
		return slices.DeleteFunc(slices.Clone(p.open), func(run *relayRun) bool { return !p.mayEnd(run) })
	}
	p := m.process(t, func(p *relayProc) bool { return len(ending(p)) > 0 })
	return p, anyOf(t, "call", ending(p))
}

// asks has a call ask its client. Before that its process reads all it was told: it asks nothing for a call that was cancelled.
func (m *relayModel) asks(t *rapid.T) {
	p, run := m.run(t)
	for p.read() {
	}
	if !p.dead && !p.closing && slices.Contains(p.open, run) && p.question(run) && run.modern() {
		c := m.calls[run.Params.Arguments.Key]
		c.begun, c.later = 0, true
	}
}

// dies ends a process by itself.
func (m *relayModel) dies(t *rapid.T) {
	p := m.process(t, (*relayProc).isThere)
	if p.works() {
		m.seen["at work in a crash"]++
	}
	p.die(rapid.SampledFrom([]int{0, 1, 137}).Draw(t, "code"))
}

// actions are everything that can happen.
func (m *relayModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"client comes": func(t *rapid.T) {
			if len(m.here()) < 4 {
				m.comes(rapid.SampledFrom(m.eraOf).Draw(t, "modern"))
			}
		},
		"client leaves": func(t *rapid.T) {
			if all := m.here(); len(all) > 1 {
				anyOf(t, "client", all).leaves()
			}
		},
		"call": m.call, "call again": m.call, "call once more": m.call,
		"ask": func(t *rapid.T) {
			p := anyOf(t, "client", m.here())
			p.send(&relayCall{peer: p, method: rapid.SampledFrom([]string{"tools/list", "prompts/list", "server/discover", "ping"}).Draw(t, "method")}, false)
		},
		"cancel": func(t *rapid.T) {
			p := anyOf(t, "client", m.here())
			if c := anyOf(t, "request", p.open); c.method != "initialize" {
				p.cancel(c)
			}
		},
		"client answers": func(t *rapid.T) {
			p := anyOf(t, "client", m.here())
			p.answer(anyOf(t, "question", p.asked))
		},
		"call goes on": func(t *rapid.T) {
			p := anyOf(t, "client", m.here())
			p.goesOn(anyOf(t, "call", p.parked), rapid.Bool().Draw(t, "progress"))
		},
		"process reads a line": func(t *rapid.T) { m.process(t, (*relayProc).hasLines).read() },
		"process reads": func(t *rapid.T) {
			for p := m.process(t, (*relayProc).hasLines); p.read(); {
			}
		},
		"process finishes": func(t *rapid.T) {
			p, run := m.ends(t)
			p.finish(run)
		},
		"process finishes twice": func(t *rapid.T) {
			p, run := m.ends(t)
			p.finish(run)
			p.answer(run.relayMessage, `{"content":[{"type":"text","text":"once more"}]}`)
		},
		"process refuses": func(t *rapid.T) {
			p, run := m.ends(t)
			p.leave(run)
			p.fail(run.relayMessage, -32000, "no")
		},
		"process asks": m.asks, "process asks again": m.asks,
		"process reports progress": func(t *rapid.T) {
			p, run := m.run(t)
			if token := run.Params.Meta["progressToken"]; token != nil {
				run.progress++
				p.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, run.progress)
			}
		},
		"process dies":             m.dies,
		"restart":                  func(t *rapid.T) { anyOf(t, "server", m.kept).restart() },
		"the next start fails":     func(*rapid.T) { m.fails = true },
		"something happens":        func(*rapid.T) { m.happens() },
		"all that can happen does": func(*rapid.T) { m.settle() },
		"time passes": func(t *rapid.T) {
			m.pass(rapid.SampledFrom([]time.Duration{time.Millisecond, 150 * time.Millisecond, 2 * time.Second, 40 * time.Second}).Draw(t, "time"))
		},
		"all processes work":       func(*rapid.T) { m.works(500 * time.Millisecond) },
		"all processes work again": func(*rapid.T) { m.works(5 * time.Second) },
	}
}

// works has all processes read, and end when they are to, for a while. Left to chance, hardly any would come up.
func (m *relayModel) works(d time.Duration) {
	m.eager = true
	m.pass(d)
	m.eager = false
}

// quiet reports whether nobody waits for anything.
func (m *relayModel) quiet() bool {
	for _, p := range m.here() {
		if len(p.open)+len(p.parked)+len(p.asked) > 0 {
			return false
		}
	}
	for p := range m.procs {
		if len(p.pipe)+len(p.open) > 0 || len(p.asks) > 0 && !p.closing {
			return false
		}
	}
	return true
}

// allAnswer lets processes and clients answer what they are asked.
func (m *relayModel) allAnswer() {
	for p := range m.procs {
		for _, run := range slices.Clone(p.open) {
			if p.mayEnd(run) {
				p.finish(run)
			}
		}
	}
	m.settle()
	for _, p := range m.here() {
		for _, a := range slices.Clone(p.asked) {
			p.answer(a)
		}
		for _, c := range slices.Clone(p.parked) {
			p.goesOn(c, false)
		}
	}
	m.settle()
}

// finish lets everybody do what they are to do, and looks at what is left.
func (m *relayModel) finish() {
	m.eager, m.fails = true, false
	for i := 0; ; i++ {
		m.settle()
		m.allAnswer()
		if m.quiet() {
			break
		}
		if i > 60 {
			m.t.Fatalf("never answered: %s", m.unanswered())
		}
		m.pass(15 * time.Second)
	}
	for _, p := range m.here() {
		p.leaves()
	}
	m.settle()
	m.gw.Close(m.now)
	for i := 0; slices.ContainsFunc(m.kept, func(k *relayKept) bool { return k.link.up != nil }); i++ {
		if i > 60 {
			m.t.Fatalf("there is no end")
		}
		m.settle()
		m.allAnswer()
		m.pass(15 * time.Second)
	}
	if left := slices.Collect(m.procs); len(left) > 0 {
		m.t.Fatalf("%d processes still run, such as %s", len(left), left[0].name())
	}
	for _, k := range m.kept {
		if l := k.link; l.load()+len(l.asks()) > 0 {
			m.t.Fatalf("%s: %d calls, %d waiting, %d asks are kept", l.Name(), l.busy(), len(l.waiting), len(l.asks()))
		}
	}
	if m.gw.sessions.first != nil {
		m.t.Fatalf("a session is kept")
	}
}

// unanswered says who waits for what.
func (m *relayModel) unanswered() (all string) {
	for _, p := range m.here() {
		for _, c := range p.open {
			all += fmt.Sprintf("%s: %s %s, call %d of %s; ", p.name, c.method, c.id, c.key, c.tool)
		}
		all += fmt.Sprintf("%s: %d questions, %d rounds; ", p.name, len(p.asked), len(p.parked))
	}
	for p := range m.procs {
		all += fmt.Sprintf("process %s: %d lines, %d calls, %d questions; ", p.name(), len(p.pipe), len(p.open), len(p.asks))
	}
	return all
}

// TestRelayModel lets clients of both eras use servers of both, which crash, are replaced and answer as they like. Each request gets
// exactly one answer, under its id and with what belongs to it, or none if it was cancelled; no call that must not be repeated is
// begun twice; what is said of a call's outcome is true; questions reach the client whose call asks, and answers the process that has
// asked; progress rises; and nothing is left over. For a long run: go test -run TestRelayModel -rapid.checks=100000.
func TestRelayModel(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		seen["history"]++
		m := newRelayModel(rt, seen)
		for range rapid.IntRange(1, 3).Draw(rt, "clients") {
			m.comes(rapid.SampledFrom(m.eraOf).Draw(rt, "modern"))
		}
		m.eager = false
		if rapid.IntRange(0, 3).Draw(rt, "warm") > 0 {
			m.works(10 * time.Second)
		}
		rt.Repeat(m.actions())
		m.finish()
	})
	if seen["history"] < 100 { // one that is played again has not everything
		return
	}
	for _, what := range []string{"answered", "lost", "asked", "taken up again", "at work in a crash"} {
		if seen[what] == 0 {
			t.Errorf("nothing was %s in %d histories", what, seen["history"])
		}
	}
}
