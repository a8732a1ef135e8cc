package backend

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// simClient is the simulated client and its memory of everything it asked.
type simClient struct {
	m        *model
	era      mcp.Era
	ready    bool // initialize is answered
	said     bool // it has sent notifications/initialized
	keys     int
	all      map[string]*simCall // by key
	open     []*simCall          // not answered, not cancelled
	asked    []*simAsk           // requests of servers that it may answer
	sending  *simBatch           // it is being taken just now
	parked   []*simCall          // the server wants to know something before it goes on with them
	tools    string              // the list as last shown or announced; "" before
	doubtful bool                // it came within an array
	owes     bool                // a list_changed came that no list followed
}

// simCall is one request of the client.
type simCall struct {
	key, id, method, tool string
	token                 string
	progress              float64 // the last; before the first, less than all
	batch                 *simBatch
	runs                  []int  // generations that began it
	whole                 bool   // a process died that had read all of it but the newline, or is stuck and was given it
	line                  string // but for its id and its end
	state                 string // raw requestState of a parked call
	responses             string // raw inputResponses that it waits for
}

type simBatch struct {
	open  int
	split bool // a bridge came while it was taken: what was not taken by then has an array of its own
}

// simAsk is one request of a server as the client sees it.
type simAsk struct {
	id, from  string
	withdrawn bool
}

func (c *simClient) init(m *model, era mcp.Era) {
	c.m, c.era, c.all = m, era, map[string]*simCall{}
}

// unsafe reports whether the call must never be begun twice.
func (k *simCall) unsafe() bool {
	return k.method == "custom/thing" || k.method == "tasks/cancel" ||
		k.method == "tools/call" && (k.tool == "bump" || k.tool == "server_status" || k.tool == "extra")
}

// executed notes that a process has begun a request.
func (c *simClient) executed(key string, gen int) *simCall {
	k := c.all[key]
	if k == nil {
		c.m.rt.Fatalf("process %d got a request nobody made: key %s", gen, key)
	}
	k.runs = append(k.runs, gen)
	if k.unsafe() && len(k.runs) > 1 || k.method == "tools/call" && len(k.runs) > 1+repeatsAllowed {
		c.m.rt.Fatalf("%s %s (%s) was begun by processes %v", k.method, k.tool, k.id, k.runs)
	}
	return k
}

func (c *simClient) send(line string) {
	c.m.rt.Logf("C> %s", line)
	buf := []byte(line)
	c.m.b.ClientLine(c.m.now, buf)
	for i := range buf {
		buf[i] = 'y' // whoever kept it has kept too much
	}
}

func (c *simClient) initialize(version string) {
	c.keys++
	k := &simCall{key: fmt.Sprint(c.keys), id: fmt.Sprint(c.keys), method: "initialize"}
	c.all[k.key], c.open = k, append(c.open, k)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"initialize","params":{"protocolVersion":%q,"key":%s}}`, k.id, version, k.key))
}

func (c *simClient) sendsInitialized() {
	c.said = true
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// newCall draws a request and remembers it.
func (c *simClient) newCall() (k *simCall, line string) {
	c.keys++
	n := c.keys
	k = &simCall{key: fmt.Sprint(n), progress: math.Inf(-1)}
	k.id = rapid.SampledFrom([]string{
		fmt.Sprint(n), fmt.Sprintf("%d.0", n), fmt.Sprintf("%de3", n), fmt.Sprintf("%d.5", n), fmt.Sprint(9007199254740993 + n), fmt.Sprint(-n),
		fmt.Sprintf(`"%d"`, n), fmt.Sprintf(`"\u00e9%d"`, n), fmt.Sprint(ownFrom + n), fmt.Sprintf("%d.0", ownFrom+n), fmt.Sprintf(`"%d"`, ownFrom+n),
	}).Draw(c.m.rt, "id")
	for _, o := range c.open {
		if jsonrpc.SameID([]byte(o.id), []byte(k.id)) {
			k.id = fmt.Sprintf(`"other %d"`, n)
		}
	}
	k.method = rapid.SampledFrom([]string{
		"tools/call", "tools/call", "tools/call", "tools/call", "tools/list", "prompts/list", "prompts/get", "ping", "custom/thing",
		"tasks/cancel", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
	}).Draw(c.m.rt, "method")
	meta := []string{}
	if rapid.IntRange(0, 2).Draw(c.m.rt, "with progress") == 0 {
		k.token = rapid.SampledFrom([]string{fmt.Sprint(n), fmt.Sprintf(`"t%d"`, n)}).Draw(c.m.rt, "token")
		meta = append(meta, `"progressToken":`+k.token)
	}
	if c.era == mcp.Modern {
		meta = append(meta, `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`,
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}`)
	}
	params := fmt.Sprintf(`"key":%d`, n)
	switch k.method {
	case "tools/call":
		k.tool = rapid.SampledFrom([]string{
			"bump", "bump", "look", "set", "again", "extra", "server_status", "verify_server_restarted", "restart_server",
		}).Draw(c.m.rt, "tool")
		params += fmt.Sprintf(`,"name":%q,"arguments":{"reason":"r","since_timestamp":"2026-11-21T11:00:00Z"}`, k.tool)
	case "resources/subscribe", "resources/unsubscribe":
		params += `,"uri":"file:///x"`
	}
	if len(meta) > 0 {
		params += `,"_meta":{` + strings.Join(meta, ",") + `}`
	}
	c.all[k.key], c.open = k, append(c.open, k)
	k.line = fmt.Sprintf(`"method":%q,"params":{%s`, k.method, params)
	return k, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}}`, k.id, k.line)
}

// goesOn answers what the client was asked within its calls.
func (c *simClient) goesOn() {
	parked := c.parked
	c.parked = nil
	for _, k := range parked {
		c.keys++
		k.id = fmt.Sprintf(`"round %d"`, c.keys)
		c.open = append(c.open, k)
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s,"requestState":%s,"inputResponses":%s}}`, k.id, k.line, k.state, k.responses))
	}
}

// parks keeps a call whose server asks something first.
func (c *simClient) parks(k *simCall, result json.RawMessage) {
	if c.m.only != mcp.Legacy {
		c.m.rt.Fatalf("nobody asked anything: %s", result)
	}
	var asks map[string]struct{ Params struct{ From string } }
	if err := json.Unmarshal(member(result, "inputRequests"), &asks); err != nil || len(asks) == 0 {
		c.m.rt.Fatalf("%v: %s", err, result)
	}
	answers := map[string]any{}
	for key, a := range asks {
		answers[key] = map[string]string{"to": a.Params.From}
	}
	raw, err := json.Marshal(answers)
	if err != nil {
		c.m.rt.Fatalf("%v", err)
	}
	k.state, k.responses, k.progress = string(member(result, "requestState")), string(raw), math.Inf(-1)
	c.parked = append(c.parked, k)
}

func (c *simClient) asks() {
	_, line := c.newCall()
	c.send(line)
}

func (c *simClient) sendsBatch() {
	n := rapid.IntRange(1, 3).Draw(c.m.rt, "batch")
	b := &simBatch{open: n}
	lines := []string{`{"jsonrpc":"2.0","method":"notifications/x"}`}
	for range n {
		k, line := c.newCall()
		if c.m.version == mcp.BatchVersion && c.era == mcp.Legacy {
			k.batch = b
		}
		lines = append(lines, line)
	}
	c.sending = b
	c.send("[" + strings.Join(lines, ",") + "]")
	c.sending = nil
}

func (c *simClient) notifies() {
	c.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
}

// sendsRubbish sends what no server must see.
func (c *simClient) sendsRubbish() {
	c.send(rapid.SampledFrom([]string{"", "{", "[]", "[1,null]", "null", `{"jsonrpc":"2.0"}`, `{"method":"x"}`, "\xff",
		`{"jsonrpc":"2.0","id":null,"method":"x"}`, `{"jsonrpc":"2.0","id":"unknown","result":{}}`}).Draw(c.m.rt, "rubbish"))
}

// cancels cancels one open request, or one that never was.
func (c *simClient) cancels() {
	id := `"never"`
	if len(c.open) > 0 {
		i := rapid.IntRange(0, len(c.open)-1).Draw(c.m.rt, "which")
		k := c.open[i]
		if k.batch != nil && c.m.only == mcp.Modern {
			return // which of its elements are answered already the bridge alone knows
		}
		id = k.id
		// An answer that waits for the rest of its batch is an answer all the same.
		if k.batch == nil || c.m.b.calls.find([]byte(id)) != nil {
			c.open = slices.Delete(c.open, i, i+1)
			if k.batch != nil {
				k.batch.open--
			}
		}
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id))
}

// answersServer answers one request of a server, be it withdrawn or not.
func (c *simClient) answersServer() {
	c.goesOn()
	if len(c.asked) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.asked)-1).Draw(c.m.rt, "which")
	a := c.asked[i]
	c.asked = slices.Delete(c.asked, i, i+1)
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"to":%q}}`, a.id, a.from))
}

func (m *model) ForwardToClient(line []byte) { m.client.gets(string(line)) }
func (m *model) SendToClient(line []byte)    { m.client.gets(string(line)) }

// gets takes one line, or an array of answers.
func (c *simClient) gets(line string) {
	c.m.rt.Logf("C< %s", line)
	if c.m.finished {
		c.m.rt.Fatalf("after the end the client got %s", line)
	}
	if strings.HasPrefix(line, "[") {
		c.getsArray(line)
		return
	}
	msg := c.parse([]byte(line))
	switch {
	case msg.Method == "":
		c.getsAnswer(msg, line, false)
	case msg.ID != nil:
		c.getsRequest(msg, line)
	default:
		c.getsNotification(msg, line)
	}
}

func (c *simClient) parse(line []byte) wireMessage {
	var msg wireMessage
	if err := json.Unmarshal(line, &msg); err != nil {
		c.m.rt.Fatalf("the client got %q: %v", line, err)
	}
	return msg
}

func (c *simClient) getsArray(line string) {
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(line), &parts); err != nil || len(parts) == 0 {
		c.m.rt.Fatalf("the client got %q: %v", line, err)
	}
	var b *simBatch
	for _, p := range parts {
		k := c.getsAnswer(c.parse(p), line, true)
		if b != nil && k.batch != b {
			c.m.rt.Fatalf("answers of two batches in one array: %s", line)
		}
		b = k.batch
	}
	if b.open != 0 && !b.split {
		c.m.rt.Fatalf("a batch was answered with %d answers missing: %s", b.open, line)
	}
}

// getsAnswer finds the open request with exactly these bytes as its id.
func (c *simClient) getsAnswer(msg wireMessage, line string, array bool) *simCall {
	i := slices.IndexFunc(c.open, func(k *simCall) bool { return k.id == string(msg.ID) })
	if i < 0 {
		c.m.rt.Fatalf("an answer nobody waits for: %s", line)
	}
	k := c.open[i]
	if k.batch != nil != array {
		c.m.rt.Fatalf("in a batch: %v, answered in one: %v: %s", k.batch != nil, array, line)
	}
	if array {
		k.batch.open--
	}
	c.open = slices.Delete(c.open, i, i+1)
	delivered := string(member(msg.Error, "data", "delivered"))
	if delivered == "" {
		delivered = string(member(msg.Result, "_meta", mcp.MetaOutcome, "delivered"))
	}
	switch {
	case delivered == `"no"` && k.unsafe() && len(k.runs) > 0:
		c.m.rt.Fatalf("said not to be delivered, but processes %v began it: %s", k.runs, line)
	case delivered == `"unknown"` && c.m.counts && len(k.runs) == 0 && !k.whole && k.unsafe():
		// One that may be done twice was to be sent again; that its process had only read it is not known then.
		c.m.rt.Fatalf("said to be unknown, but no process ever began it: %s", line)
	}
	if string(member(msg.Result, "resultType")) == `"input_required"` {
		c.parks(k, msg.Result)
		return k
	}
	switch k.method {
	case "initialize":
		c.ready = msg.Result != nil
	case "tools/list":
		if msg.Result != nil {
			c.tools, c.owes, c.doubtful = string(msg.Result), false, array
		}
	}
	return k
}

func (c *simClient) getsRequest(msg wireMessage, line string) {
	if c.era == mcp.Modern {
		c.m.rt.Fatalf("a modern client got a request: %s", line)
	}
	for _, a := range c.asked {
		if a.id == string(msg.ID) && !a.withdrawn {
			c.m.rt.Fatalf("id %s is open already: %s", msg.ID, line)
		}
	}
	var from string
	if err := json.Unmarshal(member(msg.Params, "from"), &from); err != nil {
		c.m.rt.Fatalf("%v: %s", err, line)
	}
	c.asked = append(c.asked, &simAsk{id: string(msg.ID), from: from})
}

func (c *simClient) getsNotification(msg wireMessage, line string) {
	switch msg.Method {
	case "notifications/progress":
		token := string(member(msg.Params, "progressToken"))
		i := slices.IndexFunc(c.open, func(k *simCall) bool { return k.token == token })
		if i < 0 {
			c.m.rt.Fatalf("progress nobody waits for: %s", line)
		}
		value := 0.0
		if err := json.Unmarshal(member(msg.Params, "progress"), &value); err != nil || value <= c.open[i].progress {
			c.m.rt.Fatalf("progress after %g: %s (%v)", c.open[i].progress, line, err)
		}
		c.open[i].progress = value
	case "notifications/cancelled":
		for _, a := range c.asked {
			a.withdrawn = a.withdrawn || a.id == string(member(msg.Params, "requestId"))
		}
	case "notifications/tools/list_changed":
		if c.tools == "" && !c.heldBack() {
			c.m.rt.Fatalf("list_changed for a list that was never shown")
		}
		if c.showsExtra() == c.m.main().extra && !c.heldBack() {
			c.m.rt.Fatalf("list_changed without a difference")
		}
		c.owes = true
		c.tools = strings.Join(c.m.main().tools(), ",")
	}
}

func (c *simClient) showsExtra() bool { return strings.Contains(c.tools, `"extra"`) }

// heldBack reports whether the list that the client has may be older than what was answered last: an array waits for its last
// answer, so the list in it may come after a newer one. A list that comes by itself later ends the doubt.
func (c *simClient) heldBack() bool {
	return c.doubtful || slices.ContainsFunc(c.open, func(k *simCall) bool { return k.method == "tools/list" && k.batch != nil })
}

// upToDate checks that a client which has read the list knows of every difference.
func (c *simClient) upToDate() {
	if c.era == mcp.Legacy && c.tools != "" && c.showsExtra() != c.m.main().extra && !c.heldBack() {
		c.m.rt.Fatalf("the list is another one now, and the client was not told")
	}
}

func (c *simClient) openIDs() (ids []string) {
	for _, k := range c.open {
		ids = append(ids, k.method+" "+k.id)
	}
	return ids
}

func (c *simClient) allAnswered() {
	if len(c.open) > 0 {
		c.m.rt.Fatalf("never answered: %v", c.openIDs())
	}
}
