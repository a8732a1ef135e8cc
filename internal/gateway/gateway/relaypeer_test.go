package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// relayPeer is one client of the model, over HTTP. What belongs to no request comes apart, and in the modern era each request has a
// connection of its own.
type relayPeer struct {
	m       *relayModel
	name    string // whom the transport has authenticated
	modern  bool
	left    bool
	session *Session // of the legacy era
	last    int
	open    []*relayCall // without an answer
	parked  []*relayCall // that were answered with a question
	asked   []relayAsked
}

// relayAsked is a question that a client of the legacy era has not answered.
type relayAsked struct{ id, from string }

// relayCall is one request, in as many rounds as it takes.
type relayCall struct {
	peer         *relayPeer
	key          int // of a call of a tool, which is named in all that belongs to it; 0: another request
	method, tool string
	params       string // raw members, but for _meta
	id, token    string // raw, of this round; token "": it wants no progress
	state        string // raw members by which the next round goes on
	session      *Session
	over         bool // this round has its answer, or must not get one
	progress     float64
	begun        int  // processes that have begun this round
	later        bool // the server has been asked for it anew: one that refuses another process's state has begun nothing, unknown to outlive
}

// send sends a call's next round.
func (p *relayPeer) send(c *relayCall, withProgress bool) {
	p.last++
	c.id = []string{fmt.Sprint(p.last), fmt.Sprintf(`"%d"`, p.last), fmt.Sprintf("%d.0", p.last)}[p.last%3]
	c.over, c.progress, c.token, c.session = false, 0, "", p.session
	var meta []string
	if withProgress {
		c.token = fmt.Sprintf(`"t%d"`, p.last)
		meta = append(meta, `"progressToken":`+c.token)
	}
	if p.modern {
		meta = append(meta, strings.TrimSuffix(strings.TrimPrefix(relayMeta, `"_meta":{`), "}"))
		c.session = p.m.gw.Open(nil, nil)
		c.session.principal = p.name
	}
	params := []string{c.params, c.state, `"_meta":{` + strings.Join(meta, ",") + `}`}
	params = slices.DeleteFunc(params, func(one string) bool { return one == "" || one == `"_meta":{}` })
	c.state = ""
	p.open = append(p.open, c)
	c.session.Message(p.m.now, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":{%s}}`, c.id, c.method, strings.Join(params, ",")), c)
}

// ends takes a call from those that wait for an answer.
func (c *relayCall) ends() {
	c.over = true
	c.peer.open = slices.DeleteFunc(c.peer.open, func(one *relayCall) bool { return one == c })
	if s := c.session; c.peer.modern { // nobody may be inside of it now
		c.peer.m.late = append(c.peer.m.late, func() { s.Close(c.peer.m.now) })
	}
}

// Send implements Stream.
func (c *relayCall) Send(line []byte) {
	m, t := readMessage(c.peer.m.t, string(line)), c.peer.m.t
	switch {
	case m.Method == "notifications/progress":
		if c.over || c.token == "" || string(m.Params.ProgressToken) != c.token || m.Params.Progress <= c.progress {
			t.Fatalf("%s with the token %s, over: %v, is told after %g: %s", c.id, c.token, c.over, c.progress, line)
		}
		c.progress = m.Params.Progress
	case m.Method != "":
		c.peer.told(m, string(line))
	case c.over || string(m.ID) != c.id:
		t.Fatalf("%s of %s, over: %v, is answered %s", c.id, c.peer.name, c.over, line)
	default:
		c.ends()
		if c.key != 0 {
			c.answered(m, string(line))
		}
	}
}

// answered looks at an answer: it is the call's own, and says truly whether the call was begun.
func (c *relayCall) answered(m relayMessage, line string) {
	model := c.peer.m
	if _, text, found := strings.Cut(line, `"text":"key `); found {
		if number, _, _ := strings.Cut(text, `"`); number != fmt.Sprint(c.key) {
			model.t.Fatalf("call %d gets the answer to call %s: %s", c.key, number, line)
		}
		model.seen["answered"]++
	}
	switch {
	case c.tool != "bump": // what may be done twice may have been begun by a process that has died
	case strings.Contains(line, `"delivered":"no"`) && c.begun > 0:
		model.t.Fatalf("call %d was begun, and is said not to be delivered: %s", c.key, line)
	case strings.Contains(line, `"delivered":"unknown"`) && c.begun == 0 && !c.later && model.counts:
		model.t.Fatalf("no process has begun call %d, whose outcome is said to be unknown: %s", c.key, line)
	}
	if strings.Contains(line, `"delivered":"unknown"`) {
		model.seen["lost"]++
	}
	if c.peer.modern && strings.Contains(line, `"input_required"`) {
		c.parks(m)
	}
}

// parks keeps a call that was answered with questions, with what its next round says.
func (c *relayCall) parks(m relayMessage) {
	var result struct {
		RequestState  string
		InputRequests map[string]struct{ Params struct{ Message string } }
	}
	if err := json.Unmarshal(m.Result, &result); err != nil || len(result.InputRequests) == 0 {
		c.peer.m.t.Fatalf("%v: %s", err, m.Result)
	}
	responses := map[string]map[string]string{}
	for name, q := range result.InputRequests {
		key, from := c.peer.whoAsks(q.Params.Message)
		if key != c.key {
			c.peer.m.t.Fatalf("call %d is answered with a question of call %d", c.key, key)
		}
		responses[name] = map[string]string{"to": from}
	}
	raw, err := json.Marshal(responses)
	if err != nil {
		c.peer.m.t.Fatalf("%v", err)
	}
	c.state = fmt.Sprintf(`"requestState":%q,"inputResponses":%s`, result.RequestState, raw)
	c.peer.parked = append(c.peer.parked, c)
}

// whoAsks reads a question, which must be for this client.
func (p *relayPeer) whoAsks(message string) (key int, from string) {
	if _, err := fmt.Sscanf(message, "key %d from %s", &key, &from); err != nil {
		p.m.t.Fatalf("who asks %q? %v", message, err)
	}
	if c := p.m.calls[key]; c == nil || c.peer != p {
		p.m.t.Fatalf("%s is asked what call %d asks, which is not its own", p.name, key)
	}
	p.m.seen["asked"]++
	return key, from
}

// told takes what is not about one request of the client's own.
func (p *relayPeer) told(m relayMessage, line string) {
	switch {
	case p.left:
		p.m.t.Fatalf("%s has left and is told %s", p.name, line)
	case m.Method == "elicitation/create":
		if p.modern {
			p.m.t.Fatalf("a client of the modern era gets the request %s", line)
		}
		for _, a := range p.asked {
			if jsonrpc.SameID([]byte(a.id), m.ID) {
				p.m.t.Fatalf("%s is asked twice under one id: %s", p.name, line)
			}
		}
		_, from := p.whoAsks(m.Params.Message)
		p.asked = append(p.asked, relayAsked{string(m.ID), from})
	case m.Method == "notifications/cancelled":
		p.asked = slices.DeleteFunc(p.asked, func(a relayAsked) bool { return jsonrpc.SameID([]byte(a.id), m.Params.RequestID) })
	}
}

// relayGeneral takes what belongs to no request.
type relayGeneral struct{ peer *relayPeer }

// Send implements Stream.
func (g relayGeneral) Send(line []byte) {
	m := readMessage(g.peer.m.t, string(line))
	if m.Method == "" || m.Method == "notifications/progress" {
		g.peer.m.t.Fatalf("apart from its requests %s is told %s", g.peer.name, line)
	}
	g.peer.told(m, string(line))
}

// answer answers a question of the legacy era.
func (p *relayPeer) answer(a relayAsked) {
	p.asked = slices.DeleteFunc(p.asked, func(one relayAsked) bool { return one == a })
	p.session.Message(p.m.now, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"to":%q}}`, a.id, a.from), relayGeneral{p})
}

// goesOn takes the next round of a call.
func (p *relayPeer) goesOn(c *relayCall, withProgress bool) {
	p.parked = slices.DeleteFunc(p.parked, func(one *relayCall) bool { return one == c })
	p.m.seen["taken up again"]++
	p.send(c, withProgress)
}

// cancel withdraws a request: in the modern era by leaving its connection.
func (p *relayPeer) cancel(c *relayCall) {
	c.ends()
	if p.modern {
		c.session.Close(p.m.now)
		return
	}
	p.session.Message(p.m.now, []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+c.id+`}}`), relayGeneral{p})
}

// leaves ends everything of the client.
func (p *relayPeer) leaves() {
	p.left = true
	for _, c := range slices.Clone(p.open) {
		c.ends()
		if p.modern {
			c.session.Close(p.m.now)
		}
	}
	p.parked, p.asked = nil, nil
	if !p.modern {
		p.session.Close(p.m.now)
	}
}
