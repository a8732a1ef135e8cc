package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// relayProc is one simulated process. What it says of a call has the call's key in it, so that nothing can reach the wrong client unseen.
type relayProc struct {
	k       *relayKept
	gen     int
	era     mcp.Era // the only one that it speaks; EraUnknown: it speaks both
	able    bool    // its client of the legacy era can be asked
	pipe    []string
	open    []*relayRun              // calls that it works on
	asks    map[string]relayQuestion // that wait for an answer, by raw id
	states  map[string]int           // keys of calls, by the requestState that it has given out for them
	listens []json.RawMessage        // raw ids of the streams it was asked for
	last    int                      // number of its last question or state

	closing, termed, killed, dead bool
}

// relayRun is a call that a process works on.
type relayRun struct {
	relayMessage
	progress int
}

// relayQuestion is a question that a process waits with, and the key of the call that asks.
type relayQuestion struct {
	from string
	key  int
}

// relayMessage is a message as either end of the relay reads it.
type relayMessage struct {
	ID     json.RawMessage
	Method string
	Result json.RawMessage
	Error  json.RawMessage
	Params struct {
		Name, Message, RequestState string
		Arguments                   struct{ Key int }
		Progress                    float64
		ProgressToken, RequestID    json.RawMessage
		InputResponses              map[string]struct{ To string }
		Notifications               json.RawMessage
		Meta                        map[string]json.RawMessage `json:"_meta"`
	}
}

func readMessage(t failer, line string) (m relayMessage) {
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("no message: %q: %v", line, err)
	}
	return m
}

// modern reports whether a request is one of the modern era.
func (m relayMessage) modern() bool { return m.Params.Meta[mcp.MetaProtocolVersion] != nil }

// askable reports whether the client of a modern call can be asked.
func (m relayMessage) askable() bool {
	return strings.Contains(string(m.Params.Meta[mcp.MetaClientCapabilities]), "elicitation")
}

// See backend.Server.

func (p *relayProc) Forward(line []byte) {
	if !p.dead && !p.closing {
		p.pipe = append(p.pipe, string(line))
	}
}
func (p *relayProc) Send(line []byte)        { p.Forward(line) }
func (p *relayProc) Backlog() int            { return 0 }
func (p *relayProc) CloseInput()             { p.closing = true }
func (p *relayProc) Terminate()              { p.termed = true }
func (p *relayProc) Kill()                   { p.killed = true }
func (p *relayProc) Abandon()                {}
func (p *relayProc) Continue()               {}
func (p *relayProc) PID() int                { return 1000 + p.gen }
func (p *relayProc) Unread() (int, bool)     { return p.unread(), p.k.w.counts }
func (p *relayProc) Vitals() backend.Vitals  { return backend.Vitals{} }
func (p *relayProc) LastStderr(int) []string { return nil }
func (p *relayProc) Installing() bool        { return false }

func (p *relayProc) unread() (n int) {
	for _, line := range p.pipe {
		n += len(line) + 1
	}
	return n
}

// obeys ends a process that is to end; false: it goes on.
func (p *relayProc) obeys() bool {
	switch {
	case p.killed:
		p.die(137)
	case !p.k.w.eager:
		return false
	case p.termed:
		p.die(143)
	case p.closing && len(p.pipe)+len(p.open) == 0:
		p.die(0)
	default:
		return false
	}
	return true
}

// die ends the process.
func (p *relayProc) die(code int) {
	if p.dead {
		return
	}
	p.dead = true
	e := backend.Exit{Code: code}
	if code > 128 {
		e.Signalled, e.Signal = true, "killed"
	}
	if p.k.w.counts {
		e.Unread = p.unread()
	}
	p.k.b.ServerExited(p.k.w.now, p.gen, e)
	p.k.b.ServerClosed(p.k.w.now, p.gen)
}

func (p *relayProc) say(format string, args ...any) {
	if !p.dead {
		p.k.b.ServerLine(p.k.w.now, p.gen, fmt.Appendf(nil, format, args...), true)
	}
}

func (p *relayProc) answer(m relayMessage, result string) {
	if m.modern() {
		result = `{"resultType":"complete",` + strings.TrimPrefix(result, "{")
		result = strings.Replace(result, ",}", "}", 1)
	}
	p.say(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (p *relayProc) fail(m relayMessage, code int, text string) {
	p.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text)
}

// read handles the next line that the process was told; false: there is none.
func (p *relayProc) read() bool {
	if p.dead || len(p.pipe) == 0 {
		return false
	}
	line := p.pipe[0]
	p.pipe = p.pipe[1:]
	m := readMessage(p.k.w.t, line)
	switch {
	case m.Method == "":
		p.answered(m, line)
	case m.ID == nil:
		if m.Method == "notifications/cancelled" {
			p.cancelled(m.Params.RequestID)
		}
	case p.era == mcp.Modern && !m.modern():
		if m.Method != "initialize" {
			p.k.w.t.Fatalf("a process of the modern era is told %s", line)
		}
		p.fail(m, -32022, "Unsupported protocol version")
	case p.era == mcp.Legacy && m.modern():
		if m.Method != "server/discover" {
			p.k.w.t.Fatalf("a process of the legacy era is told %s", line)
		}
		p.fail(m, -32601, "Method not found")
	default:
		p.serve(m, line)
	}
	return true
}

func (p *relayProc) cancelled(id []byte) {
	p.open = slices.DeleteFunc(p.open, func(r *relayRun) bool { return jsonrpc.SameID(r.ID, id) })
	p.listens = slices.DeleteFunc(p.listens, func(one json.RawMessage) bool { return jsonrpc.SameID(one, id) })
}

// serve is what a process does with a request.
func (p *relayProc) serve(m relayMessage, line string) {
	switch m.Method {
	case "initialize":
		p.able = strings.Contains(line, `"elicitation"`)
		p.answer(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}`)
	case "server/discover":
		p.answer(m, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"logging":{}}}`)
	case "tools/list":
		p.answer(m, p.list())
	case "subscriptions/listen":
		p.listens = append(p.listens, m.ID)
		p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{%q:%s},"notifications":%s}}`,
			mcp.MetaSubscriptionID, m.ID, m.Params.Notifications)
	case "tools/call":
		p.call(m)
	default:
		p.answer(m, "{}")
	}
}

// list has tools of each kind: do answers at once, ask and see ask first, the others wait for the test.
func (p *relayProc) list() string {
	all := `{"tools":[{"name":"do"},{"name":"ask"},{"name":"see","annotations":{"readOnlyHint":true}},{"name":"bump"},` +
		`{"name":"look","annotations":{"readOnlyHint":true}},{"name":"set","annotations":{"idempotentHint":true}}`
	for _, name := range p.k.w.extra[p.k.link.Name()] {
		all += fmt.Sprintf(`,{"name":%q}`, name)
	}
	return all + "]}"
}

// changed says that the list of tools is another one, in the process's own era.
func (p *relayProc) changed() {
	if len(p.listens) == 0 {
		p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
	for _, id := range p.listens {
		p.say(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{%q:%s}}}`, mcp.MetaSubscriptionID, id)
	}
}

// call begins a call, or a further round of one that this very process has given out a state for.
func (p *relayProc) call(m relayMessage) {
	run := &relayRun{relayMessage: m}
	if state := m.Params.RequestState; state != "" {
		key, known := p.states[state]
		if !known {
			p.fail(m, -32602, "Invalid or expired requestState")
			return
		}
		if to := m.Params.InputResponses["q"].To; key != m.Params.Arguments.Key || to != state {
			p.k.w.t.Fatalf("call %d goes on with the state of call %d and an answer to %q", m.Params.Arguments.Key, key, to)
		}
		delete(p.states, state)
	}
	p.k.w.begun(p, m)
	p.open = append(p.open, run)
	switch m.Params.Name {
	case "do":
		p.finish(run)
	case "ask", "see":
		if m.Params.RequestState != "" || !p.question(run) {
			p.finish(run)
		}
	}
}

// name tells the process from all others.
func (p *relayProc) name() string { return fmt.Sprintf("%s/%d/%d", p.k.link.Name(), p.k.number, p.gen) }

// leave takes a call from those that the process works on; false: it was cancelled.
func (p *relayProc) leave(run *relayRun) bool {
	before := len(p.open)
	p.open = slices.DeleteFunc(p.open, func(one *relayRun) bool { return one == run })
	return len(p.open) < before
}

// finish answers a call with its key.
func (p *relayProc) finish(run *relayRun) {
	if p.leave(run) {
		p.answer(run.relayMessage, fmt.Sprintf(`{"content":[{"type":"text","text":"key %d"}]}`, run.Params.Arguments.Key))
	}
}

// question has a call ask its client: in the modern era by its answer. false: the client cannot be asked, or a question of the call is open.
func (p *relayProc) question(run *relayRun) bool {
	key := run.Params.Arguments.Key
	p.last++
	from := fmt.Sprintf("%s/%d", p.name(), p.last)
	text := fmt.Sprintf(`"params":{"message":"key %d from %s","requestedSchema":{"type":"object","properties":{}}}`, key, from)
	switch {
	case run.modern() && !run.askable(), !run.modern() && (!p.able || p.waits(key)):
		return false
	case run.modern():
		p.leave(run)
		p.states[from] = key
		p.say(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"input_required","requestState":%q,"inputRequests":{"q":{"method":"elicitation/create",%s}}}}`,
			run.ID, from, text)
	default:
		id := fmt.Sprint(p.last)
		p.asks[id] = relayQuestion{from, key}
		p.say(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create",%s}`, id, text)
	}
	return true
}

// mayEnd reports whether a call may be answered: not before its own question is, as long as the question may be another call's.
func (p *relayProc) mayEnd(run *relayRun) bool {
	others := 0
	for _, one := range p.k.procs {
		others += len(one.open) + len(one.pipe)
	}
	return others == 1 || !p.waits(run.Params.Arguments.Key)
}

// waits reports whether a question of a call has no answer.
func (p *relayProc) waits(key int) bool {
	for _, q := range p.asks {
		if q.key == key {
			return true
		}
	}
	return false
}

// answered takes an answer to one of the process's questions. The tools that ask first go on with it.
func (p *relayProc) answered(m relayMessage, line string) {
	q, asked := p.asks[string(m.ID)]
	if !asked {
		p.k.w.t.Fatalf("process %s is answered what it does not ask: %s", p.name(), line)
	}
	delete(p.asks, string(m.ID))
	var result struct{ To string }
	if m.Error == nil && (json.Unmarshal(m.Result, &result) != nil || result.To != q.from) {
		p.k.w.t.Fatalf("process %s gets an answer that is meant for %s: %s", p.name(), result.To, line)
	}
	for _, run := range slices.Clone(p.open) {
		if run.Params.Arguments.Key == q.key && (run.Params.Name == "ask" || run.Params.Name == "see") {
			p.finish(run)
		}
	}
}
