package backend

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/keep/health"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// eraWorld is a client of one era before a server whose every process may speak another one only.
type eraWorld struct {
	*fakeWorld
	rt interface {
		Fatalf(format string, args ...any)
	}
	client mcp.Era
	next   mcp.Era // of the process that is started next
	todo   []func()
	procs  []*eraServer
	last   int
	waits  map[string]bool // requests of the client without an answer, by raw id
	opens  map[string]bool // its listens that have not been acknowledged, or are open: true once they are
}

// eraServer is one process. It must not be spoken to in an era that it has not been greeted in.
type eraServer struct {
	fakeServer
	e       *eraWorld
	era     mcp.Era
	spoken  mcp.Era
	dead    bool
	pending []string // raw ids of calls that it has not answered
}

func newEraWorld(rt interface{ Fatalf(string, ...any) }, client mcp.Era) *eraWorld {
	e := &eraWorld{fakeWorld: &fakeWorld{now: epoch, canCount: true}, rt: rt, client: client, next: client,
		waits: map[string]bool{}, opens: map[string]bool{}}
	// The servers work only when they are let, so time limits are none of theirs.
	e.b = New(Options{Name: "srv", Command: []string{"srv"}, NoTools: true, ListenPatience: time.Hour, QueueFor: time.Hour,
		Health: health.Options{Off: true}}, e, e)
	e.b.Open(e.now)
	return e
}

func (e *eraWorld) Start(l Launch) (Server, error) {
	p := &eraServer{fakeServer: fakeServer{w: e.fakeWorld, gen: l.Gen}, e: e, era: e.next}
	e.procs = append(e.procs, p)
	return p, nil
}

func (p *eraServer) Forward(line []byte) {
	text := string(line)
	p.e.todo = append(p.e.todo, func() { p.handle(text) })
}
func (p *eraServer) Send(line []byte) { p.Forward(line) }
func (p *eraServer) CloseInput()      {}
func (p *eraServer) Terminate()       { p.e.todo = append(p.e.todo, func() { p.exit(143) }) }
func (p *eraServer) Kill()            { p.Terminate() }

func (p *eraServer) exit(code int) {
	if p.dead {
		return
	}
	p.dead = true
	p.e.b.ServerExited(p.e.now, p.gen, Exit{Code: code})
	p.e.b.ServerClosed(p.e.now, p.gen)
}

func (p *eraServer) say(format string, args ...any) {
	p.e.b.ServerLine(p.e.now, p.gen, fmt.Appendf(nil, format, args...), true)
}

// handle is what a process makes of a line.
func (p *eraServer) handle(line string) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Meta          map[string]any `json:"_meta"`
			Notifications json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		p.e.rt.Fatalf("to the server: %q", line)
	}
	if p.dead || m.ID == nil || m.Method == "" {
		return
	}
	era := mcp.Legacy
	if m.Params.Meta[mcp.MetaProtocolVersion] != nil {
		era = mcp.Modern
	}
	if p.spoken != mcp.EraUnknown && p.spoken != era || era != p.era && m.Method != "initialize" && m.Method != "server/discover" {
		p.e.rt.Fatalf("process %d, a %s one that was greeted as a %s one, got %s", p.gen, p.era, p.spoken, line)
	}
	p.spoken = era
	switch {
	case era == mcp.Legacy && p.era == mcp.Modern:
		p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"Unsupported protocol version"}}`, m.ID)
	case era == mcp.Modern && p.era == mcp.Legacy:
		p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
	case m.Method == "initialize":
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID)
	case m.Method == "server/discover":
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}}}}`, m.ID)
	case m.Method == "subscriptions/listen":
		p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"`+mcp.MetaSubscriptionID+`":%s},"notifications":%s}}`, m.ID, m.Params.Notifications)
	case m.Method == "tools/call":
		p.pending = append(p.pending, string(m.ID))
	default:
		p.answer(string(m.ID))
	}
}

func (p *eraServer) answer(id string) {
	complete := ""
	if p.era == mcp.Modern {
		complete = `"resultType":"complete",`
	}
	p.say(`{"jsonrpc":"2.0","id":%s,"result":{%s"tools":[],"content":[]}}`, id, complete)
}

// settle lets everything happen that needs no time, and looks at what the client was told.
func (e *eraWorld) settle() {
	for i := 0; len(e.todo) > 0; i++ {
		if i > 10_000 {
			e.rt.Fatalf("it goes on for ever")
		}
		one := e.todo[0]
		e.todo = e.todo[1:]
		one()
		if len(e.todo) == 0 {
			e.tick(0)
		}
	}
	for _, line := range e.takeClient() {
		e.hear(line)
	}
}

// hear is the client reading a line: each request has one answer, in its own era, and each listen one acknowledgement.
func (e *eraWorld) hear(line string) {
	var m struct {
		ID     json.RawMessage
		Method string
		Result map[string]any
		Params struct {
			Meta      map[string]json.RawMessage `json:"_meta"`
			RequestID json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		e.rt.Fatalf("to the client: %q", line)
	}
	stream := string(m.Params.Meta[mcp.MetaSubscriptionID])
	switch {
	case m.Method == "notifications/subscriptions/acknowledged":
		if open, mine := e.opens[stream]; !mine || open {
			e.rt.Fatalf("the client was told twice, or of nothing it asked: %s", line)
		}
		e.opens[stream] = true
	case m.Method != "":
		if (stream != "") != (e.client == mcp.Modern) {
			e.rt.Fatalf("a %s client was told %s", e.client, line)
		}
		if _, mine := e.opens[stream]; stream != "" && !mine {
			e.rt.Fatalf("told of a stream that is not open: %s", line)
		}
	case !e.waits[string(m.ID)]:
		e.rt.Fatalf("the client did not ask: %s", line)
	default:
		if m.Result != nil && (m.Result["resultType"] != nil) != (e.client == mcp.Modern) {
			e.rt.Fatalf("a %s client was answered %s", e.client, line)
		}
		delete(e.waits, string(m.ID))
		delete(e.opens, string(m.ID))
	}
}

// ask has the client ask something.
func (e *eraWorld) ask(method, params string) {
	e.last++
	id := fmt.Sprint(e.last)
	e.waits[id] = true
	if method == "subscriptions/listen" {
		e.opens[id] = false
	}
	if e.client == mcp.Modern {
		params += `"_meta":{"` + mcp.MetaProtocolVersion + `":"2026-07-28","` + mcp.MetaClientCapabilities + `":{}},`
	}
	e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s"k":1}}`, id, method, params))
}

func (e *eraWorld) say(line string) { e.b.ClientLine(e.now, []byte(line)) }

// process is the one that was started last, nil if it is dead.
func (e *eraWorld) process() *eraServer {
	if p := e.procs[len(e.procs)-1]; !p.dead {
		return p
	}
	return nil
}

func (e *eraWorld) finishCalls() {
	for _, p := range e.procs {
		for !p.dead && len(p.pending) > 0 {
			id := p.pending[0]
			p.pending = p.pending[1:]
			p.answer(id)
			e.settle()
		}
	}
}

func (e *eraWorld) greet() {
	if e.client == mcp.Modern {
		e.ask("tools/list", "")
	} else {
		e.ask("initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"},`)
	}
	e.settle()
	if e.client == mcp.Legacy {
		e.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	e.settle()
}

// TestEveryProcessMaySpeakAnotherEra: whatever era a restarted server speaks, its client hears one answer to each of its
// requests, in its own era, and no process is spoken to in an era that it does not speak or was not greeted in.
func TestEveryProcessMaySpeakAnotherEra(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := newEraWorld(rt, rapid.SampledFrom(bothEras).Draw(rt, "client"))
		e.greet()
		verbs := []string{"tools/list", "tools/call", "tools/call", "resources/read", "crash", "crash", "restart", "other", "other", "answer", "wait"}
		if e.client == mcp.Modern {
			verbs = append(verbs, "subscriptions/listen")
		} else {
			verbs = append(verbs, "resources/subscribe", "resources/unsubscribe", "logging/setLevel")
		}
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			verb := rapid.SampledFrom(verbs).Draw(rt, "step")
			wait := 0
			if verb == "wait" {
				wait = rapid.IntRange(1, 5000).Draw(rt, "ms")
			}
			e.step(verb, wait)
			if rapid.Bool().Draw(rt, "settle") {
				e.settle()
			}
		}
		e.end()
	})
}

// TestEraHistories has what TestEveryProcessMaySpeakAnotherEra has found: steps as they were drawn, and "settle".
func TestEraHistories(t *testing.T) {
	for _, history := range []struct {
		name   string
		client mcp.Era
		steps  string
	}{
		{"what was replayed is not repeated to the next process", mcp.Legacy, "tools/list tools/list resources/subscribe other tools/list restart other"},
		{"a stream of a move within a move is acknowledged once", mcp.Modern, "crash tools/call other settle restart other wait subscriptions/listen"},
	} {
		t.Run(history.name, func(t *testing.T) {
			e := newEraWorld(t, history.client)
			e.greet()
			for verb := range strings.FieldsSeq(history.steps) {
				if verb == "settle" {
					e.settle()
					continue
				}
				e.step(verb, 1000)
			}
			e.end()
		})
	}
}

var bothEras = []mcp.Era{mcp.Legacy, mcp.Modern}

// step lets one thing happen; ms is how long a "wait" takes.
func (e *eraWorld) step(verb string, ms int) {
	switch verb {
	case "crash":
		if p := e.process(); p != nil {
			p.exit(1)
		}
	case "restart":
		e.b.Restart(e.now, supervise.SourceControl, "asked")
	case "other":
		e.next = bothEras[slices.Index(bothEras, e.next)^1]
	case "answer":
		e.finishCalls()
	case "wait":
		e.tick(time.Duration(ms) * time.Millisecond)
	case "subscriptions/listen":
		e.ask(verb, `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:1"]},`)
	default:
		e.ask(verb, `"name":"t","uri":"x:1","level":"info",`)
	}
}

// end lets all processes work for long enough, after which the client has all of its answers.
func (e *eraWorld) end() {
	for range 20 {
		e.settle()
		e.finishCalls()
		for range 12 {
			e.tick(5 * time.Second)
			e.settle()
		}
	}
	e.settle()
	for id := range e.waits {
		if _, stream := e.opens[id]; !stream {
			e.rt.Fatalf("request %s has no answer", id)
		} else if !e.opens[id] {
			e.rt.Fatalf("stream %s was never acknowledged", id)
		}
	}
}
