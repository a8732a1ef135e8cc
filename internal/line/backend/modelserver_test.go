package backend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// simServer is one simulated process: a pipe it reads as much of as it likes, requests it has begun, and an end.
type simServer struct {
	m        *model
	gen      int
	extra    bool      // it has one tool more than its brothers
	starting bool      // it is still being started
	pipe     []byte    // written to it and not read
	partial  []byte    // read, no newline yet
	running  []*simRun // begun and not answered

	inputClosed, termed, killed bool
	exited, closed              bool
	asked                       int  // requests it made
	initialized                 int  // how often it was told that
	shaken                      bool // it has answered its handshake
	listed                      bool // it has answered a request for a list
}

// simRun is a request that a process has begun.
type simRun struct {
	id       json.RawMessage
	method   string
	params   json.RawMessage
	asked    *simCall // the client's request; nil if outlive asks
	progress int
}

// wireMessage is any message as either simulated side reads it.
type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// member digs into raw JSON; nil if there is nothing.
func member(raw json.RawMessage, path ...string) json.RawMessage {
	for _, key := range path {
		var o map[string]json.RawMessage
		if json.Unmarshal(raw, &o) != nil {
			return nil
		}
		raw = o[key]
	}
	return raw
}

// Start and Finish: see World.

func (m *model) Start(l Launch) (Server, error) {
	gen := l.Gen
	alive := 0
	for s := range m.running {
		alive++
		if s.gen >= gen {
			m.rt.Fatalf("process %d is started after %d", gen, s.gen)
		}
	}
	if retired := len(m.b.beside) - len(m.b.machine.Snapshot().Spares); alive > retired+m.standby+2 {
		m.rt.Fatalf("process %d is started while %d others live, %d of them retired", gen, alive, retired)
	}
	if m.finished {
		m.rt.Fatalf("process %d is started after the end", gen)
	}
	if m.spawnFail {
		m.spawnFail = false
		return nil, errors.New("no such file")
	}
	m.slow = false
	s := &simServer{m: m, gen: gen, extra: rapid.IntRange(0, 2).Draw(m.rt, "extra tool") == 0}
	s.starting = l.Beside && rapid.Bool().Draw(m.rt, "takes its time")
	m.servers = append(m.servers, s)
	return s, nil
}

// begins makes a process exist that was still being started.
func (s *simServer) begins() {
	if s.starting {
		s.starting = false
		s.m.b.ServerSpawned(s.m.now, s.gen, s.PID())
	}
}

// isNotBorn ends a start with an error.
func (s *simServer) isNotBorn() {
	s.starting, s.exited, s.closed = false, true, true
	s.m.b.ServerExited(s.m.now, s.gen, Exit{Code: -1, Unstarted: errors.New("exec format error")})
	s.m.b.ServerClosed(s.m.now, s.gen)
}

// running yields the processes that have not come to the end of their output.
func (m *model) running(yield func(*simServer) bool) {
	for _, s := range slices.Clone(m.servers) {
		if !s.closed && !yield(s) {
			return
		}
	}
}

// main is the process that serves; nil before there was one.
func (m *model) main() *simServer {
	for _, s := range slices.Backward(m.servers) {
		if s.gen == m.b.process.gen {
			return s
		}
	}
	return nil
}

func (m *model) Finish(code int) {
	if m.finished {
		m.rt.Fatalf("finished twice")
	}
	m.finished = true
	for s := range m.running {
		if !s.exited {
			m.rt.Fatalf("finished with process %d alive", s.gen)
		}
	}
	if code != 0 {
		m.rt.Fatalf("finished with %d", code)
	}
}

// See Server.

func (s *simServer) PID() int {
	if s.starting {
		return NotSpawned
	}
	return 1000 + s.gen
}

func (s *simServer) Send(line []byte)        { s.Forward(line) }
func (s *simServer) CloseInput()             { s.inputClosed = true }
func (s *simServer) Terminate()              { s.termed = true }
func (s *simServer) Kill()                   { s.killed = true }
func (s *simServer) Continue()               {}
func (s *simServer) Vitals() Vitals          { return Vitals{} }
func (s *simServer) LastStderr(int) []string { return nil }
func (s *simServer) Installing() bool        { return false }
func (s *simServer) Unread() (int, bool)     { return len(s.pipe), s.m.counts }

func (s *simServer) Abandon() {
	if !s.exited && !s.killed {
		s.m.rt.Fatalf("process %d is abandoned alive", s.gen)
	}
	if !s.exited { // it is stuck, and may yet take what it was given
		s.mayHaveTaken(append(bytes.Clone(s.partial), s.pipe...))
	}
	s.closed = true
}

// mayHaveTaken marks the calls in a text that outlive must not say to be undelivered.
func (s *simServer) mayHaveTaken(text []byte) {
	for line := range bytes.Lines(text) {
		var msg wireMessage
		if json.Unmarshal(line, &msg) != nil || msg.ID == nil {
			continue
		}
		if k := s.m.client.all[string(member(msg.Params, "key"))]; k != nil {
			k.whole = true
		}
	}
}

func (s *simServer) Backlog() int {
	if s.m.slow {
		return slowServer
	}
	return 0
}

func (s *simServer) Forward(line []byte) {
	if bytes.ContainsAny(line, "\n\r") {
		s.m.rt.Fatalf("newline within %q", line)
	}
	s.checkOrder(string(line))
	if s.exited || s.inputClosed {
		return // the descriptor is closed
	}
	s.m.rt.Logf("S%d< %s", s.gen, line)
	s.pipe = append(append(s.pipe, line...), '\n')
}

// checkOrder: nothing is said to a process before its handshake is answered, unless its client does without one, and nothing
// opens a stream before it has answered for a list.
func (s *simServer) checkOrder(line string) {
	var msg wireMessage
	if json.Unmarshal([]byte(line), &msg) != nil {
		return // the reader complains
	}
	if handshake := msg.Method == "" || msg.Method == "initialize" || msg.Method == "server/discover"; !s.shaken && !handshake && s.m.client.era != mcp.EraUnknown {
		s.m.rt.Fatalf("process %d has not answered its handshake and is told %s", s.gen, line)
	}
	if msg.Method == "subscriptions/listen" && !s.listed {
		s.m.rt.Fatalf("process %d has shown no list and is told %s", s.gen, line)
	}
}

// reads takes some bytes; every whole line is begun at once.
func (s *simServer) reads() { s.read(rapid.IntRange(0, len(s.pipe)).Draw(s.m.rt, "bytes")) }
func (s *simServer) readAll() {
	for len(s.pipe) > 0 && !s.exited {
		s.read(len(s.pipe))
	}
}

func (s *simServer) read(n int) {
	s.begins()
	s.partial = append(s.partial, s.pipe[:n]...)
	s.pipe = s.pipe[n:]
	for {
		line, rest, whole := bytes.Cut(s.partial, []byte("\n"))
		if !whole {
			return
		}
		s.partial = bytes.Clone(rest)
		s.takes(string(line))
	}
}

// takes begins what a line asks.
func (s *simServer) takes(line string) {
	var msg wireMessage
	if err := json.Unmarshal([]byte(line), &msg); err != nil {
		s.m.rt.Fatalf("the server was sent %q: %v", line, err)
	}
	switch {
	case msg.Method == "notifications/initialized":
		s.initialized++
	case msg.Method == "":
		s.takesAnswer(msg, line)
	case msg.ID != nil:
		s.checkEra(msg, line)
		if msg.Method == "subscriptions/listen" {
			s.listens(msg)
			return
		}
		for _, r := range s.running {
			if jsonrpc.SameID(r.id, msg.ID) {
				s.m.rt.Fatalf("process %d: id %s is used twice at once: %s", s.gen, msg.ID, line)
			}
		}
		run := &simRun{id: msg.ID, method: msg.Method, params: msg.Params}
		if key := member(msg.Params, "key"); key != nil {
			run.asked = s.m.client.executed(string(key), s.gen)
		}
		s.running = append(s.running, run)
	}
}

// modernOffer is what a server of the modern era has.
const modernOffer = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}}}`

// checkEra: a server of one era must be asked in that era; initialize and server/discover are how it is found out.
func (s *simServer) checkEra(msg wireMessage, line string) {
	modern := member(msg.Params, "_meta", mcp.MetaProtocolVersion) != nil
	if s.m.only == mcp.Modern && !modern && msg.Method != "initialize" || s.m.only == mcp.Legacy && modern && msg.Method != "server/discover" {
		s.m.rt.Fatalf("process %d speaks the %s era only: %s", s.gen, s.m.only, line)
	}
}

// listens acknowledges a stream, which stays open.
func (s *simServer) listens(msg wireMessage) {
	s.says(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{%q:%s},"notifications":%s}}`,
		mcp.MetaSubscriptionID, msg.ID, member(msg.Params, "notifications")))
}

// takesAnswer checks that an answer of the client belongs to a request of this very process.
func (s *simServer) takesAnswer(msg wireMessage, line string) {
	if s.m.client.era == mcp.Modern && msg.Error != nil {
		return // outlive's own: a modern server must not ask, or nobody can be asked
	}
	want := fmt.Sprintf("%d/%s", s.gen, msg.ID)
	if got := string(member(msg.Result, "to")); got != fmt.Sprintf("%q", want) {
		s.m.rt.Fatalf("process %d got an answer meant for %s: %s", s.gen, got, line)
	}
}

func (s *simServer) says(line string) {
	s.begins()
	s.m.rt.Logf("S%d> %s", s.gen, line)
	buf := []byte(line)
	s.m.b.ServerLine(s.m.now, s.gen, buf, true)
	for i := range buf {
		buf[i] = 'x' // whoever kept it has kept too much
	}
}

// answers answers one of the running requests.
func (s *simServer) answers() {
	if len(s.running) == 0 {
		return
	}
	s.answer(rapid.IntRange(0, len(s.running)-1).Draw(s.m.rt, "which"), rapid.IntRange(0, 9).Draw(s.m.rt, "how"))
}

func (s *simServer) answerAll() {
	for len(s.running) > 0 && !s.closed {
		s.answer(0, 9)
		if !s.exited {
			s.readAll()
		}
	}
}

func (s *simServer) answer(i, how int) {
	r := s.running[i]
	s.running = slices.Delete(s.running, i, i+1)
	s.shaken = s.shaken || r.method == "initialize" || r.method == "server/discover"
	s.listed = s.listed || strings.HasSuffix(r.method, "/list")
	id := string(r.id)
	if how == 0 && !strings.ContainsAny(id, `".e`) && id != "true" {
		id += ".0" // the same number in another spelling
	}
	body := `"result":` + s.result(r)
	if how == 1 && r.asked != nil {
		body = `"error":{"code":-32000,"message":"no"}`
	}
	switch {
	case s.m.only == mcp.Modern && r.method == "initialize":
		body = `"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"]}}`
	case s.m.only == mcp.Legacy && r.method == "server/discover":
		body = `"error":{"code":-32601,"message":"Method not found"}`
	}
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, body)
	switch how {
	case 2:
		line = fmt.Sprintf(`{%s,"jsonrpc":"2.0","id":%s}`, body, id)
	case 3:
		line = "[" + line + "]"
	}
	s.says(line)
	if how == 4 {
		s.says(line) // twice is once too often
	}
}

func (s *simServer) result(r *simRun) string {
	switch r.method {
	case "initialize":
		return fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{},"logging":{}}}`, s.m.version)
	case "server/discover":
		return modernOffer
	case "tools/list":
		return `{"tools":[` + strings.Join(s.tools(), ",") + `]}`
	}
	return `{"content":[]}`
}

func (s *simServer) tools() []string {
	list := []string{`{"name":"bump"}`, `{"name":"look","annotations":{"readOnlyHint":true}}`,
		`{"name":"set","annotations":{"idempotentHint":true}}`, `{"name":"again"}`}
	if s.m.collides {
		list = append(list, `{"name":"server_status"}`)
	}
	if s.extra {
		list = append(list, `{"name":"extra"}`)
	}
	return list
}

// progresses reports progress of one running request, if it wants that.
func (s *simServer) progresses() {
	for _, r := range s.running {
		if token := member(r.params, "_meta", "progressToken"); token != nil {
			r.progress++
			s.says(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, r.progress))
			return
		}
	}
}

// asksClient sends a request; ids begin at 0 in each process.
func (s *simServer) asksClient() {
	p := s.m.b.byGen(s.gen)
	switch {
	case s.m.only == mcp.Modern:
		return
	case s.m.only == mcp.EraUnknown && s.m.client.era == mcp.Modern && (p == nil || p.era != mcp.Modern):
		return // nobody has told it yet that it must not
	case s.m.only == mcp.Legacy && (p == nil || !p.through()):
		return // nobody has told it yet that it may
	}
	id := fmt.Sprint(s.asked)
	s.asked++
	s.says(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"m","from":"%d/%s"}}`, id, s.gen, id))
}

func (s *simServer) printsNoise() {
	s.says(rapid.SampledFrom([]string{
		"starting…", "", "{", `{"level":30,"msg":"x"}`, `{"jsonrpc":"2.0","id":1,"res`, "[]", "[1]", "null", `{"jsonrpc":"2.0","id":"never","result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\ud800"}}`, "\xff\xfe", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`,
	}).Draw(s.m.rt, "noise"))
}

// dies ends the process: its exit may be seen before or after the end of its output.
func (s *simServer) dies() {
	if s.exited {
		return
	}
	code := rapid.SampledFrom([]int{1, 3, 42, 137, 139}).Draw(s.m.rt, "code")
	if len(s.running) > 0 && rapid.Bool().Draw(s.m.rt, "last words") {
		s.answers()
	}
	ends := rapid.IntRange(0, 2).Draw(s.m.rt, "output ends")
	if ends == 2 {
		s.outputEnds()
	}
	s.exit(code)
	if ends == 1 {
		s.outputEnds()
	}
}

func (s *simServer) exit(code int) {
	if s.exited {
		return
	}
	s.begins()
	s.exited = true
	s.mayHaveTaken(s.partial)
	e := Exit{Code: code}
	if code > 128 {
		e.Signalled, e.Signal = true, "killed"
	}
	if s.m.counts {
		e.Unread = len(s.pipe)
	}
	s.m.b.ServerExited(s.m.now, s.gen, e)
}

func (s *simServer) outputEnds() {
	if s.closed {
		return
	}
	s.closed = true
	s.m.b.ServerClosed(s.m.now, s.gen)
}
