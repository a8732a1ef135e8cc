package bridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// The lines of dialogues with a server that many clients share.

// by is the _meta of a request: who sends it, what can be asked, and more members. The principal is known beside the line, see
// principals.
func by(principal, name, can, more string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"` + name +
		`"},"io.modelcontextprotocol/clientCapabilities":` + can + more + `}` + besideLine + principal + besideLine
}

// besideLine encloses a principal in a line of a test. It is no part of what the bridge gets.
const besideLine = "|"

// principals knows whom the transport has authenticated for the requests of a test, by their raw ids; nil: there is one client.
type principals map[string]string

// of is [Options.Principal].
func (ps principals) of(id []byte) string { return ps[string(id)] }

// take returns a client's line as the bridge gets it, and keeps the principal beside it.
func (ps principals) take(line string) []byte {
	before, rest, named := strings.Cut(line, besideLine)
	if ps == nil || !named {
		return []byte(line)
	}
	principal, after, _ := strings.Cut(rest, besideLine)
	line = before + after
	ps[string(member([]byte(line), "id"))] = principal
	return []byte(line)
}

const canBeAsked = `{"elicitation":{},"roots":{}}`

var (
	alice = by("alice", "a", canBeAsked, "")
	bob   = by("bob", "b", canBeAsked, "")
	deaf  = by("carol", "c", `{}`, "")
)

// sent is a client's call of a tool with a number, and passed what the server gets of it. Calls that may be asked something
// go under an id of the bridge's.
func sent(id, tool int, who string) string {
	return fmt.Sprintf("\n"+`c {"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%d",%s}}`, id, tool, who)
}

func passed(wire string, tool int) string {
	return fmt.Sprintf("\n"+`S {"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"t%d"}}`, wire, tool)
}

// called is a call of the tool with its own number.
func called(id int, wire, who string) string { return sent(id, id, who) + passed(wire, id) }

// asksFor is a question with a number.
func asksFor(q int) string {
	return fmt.Sprintf(`
s {"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"m%d"}}`, q, q)
}

// put is the answer to a call by which its client is asked.
func put(id int, questions ...int) string {
	out := fmt.Sprintf(`
C {"jsonrpc":"2.0","id":%d,"result":{"resultType":"input_required","inputRequests":{`, id)
	for i, q := range questions {
		if i > 0 {
			out += ","
		}
		out += fmt.Sprintf(`"ask%d":{"method":"elicitation/create","params":{"message":"m%d"}}`, i+1, q)
	}
	return out + `},"requestState":"$new"}}`
}

// back is a call's next round, with its first call's number, and what becomes of it.
func back(id, first int, who, comes string) string {
	return fmt.Sprintf(`
c {"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%d","requestState":"$state","inputResponses":{"ask1":{"action":"accept"},"ask2":{"action":"accept"}},%s}}`,
		id, first, who) + comes
}

func given(q int) string {
	return fmt.Sprintf("\n"+`S {"jsonrpc":"2.0","id":"q%d","result":{"action":"accept"}}`, q)
}

func declined(q, code int, why string) string {
	return fmt.Sprintf("\n"+`S {"jsonrpc":"2.0","id":"q%d","error":{"code":%d,"message":%q}}`, q, code, why)
}

// ended is the server's answer to a call, and the client's.
func ended(wire string, id int) string {
	return fmt.Sprintf(`
s {"jsonrpc":"2.0","id":%s,"result":{"content":[]}}
C {"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[]}}`, wire, id)
}

func cancelled(id int, wire string) string {
	return fmt.Sprintf(`
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id, wire)
}

const (
	hiShared = `
c {"jsonrpc":"2.0","id":0,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"outlive"},"io.modelcontextprotocol/clientCapabilities":{}}}}
S {"jsonrpc":"2.0","id":"b~1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"outlive"}}}
s {"jsonrpc":"2.0","id":"b~1","result":` + initialized + `}
S {"jsonrpc":"2.0","method":"notifications/initialized"}
S {"jsonrpc":"2.0","id":0,"method":"tools/list","params":{}}
s {"jsonrpc":"2.0","id":0,"result":{"tools":[]}}
C {"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}`
	soon     = "\nt 100ms"
	notClear = "the client cannot be asked now: several calls wait for questions, and which is whose is not clear"
	tooLong  = "the client cannot be asked: it is not clear which of its calls this is for"
	notAsked = "many clients share this server: they can be asked during their calls only"
	hasLeft  = "the client does not wait for this any more"
	stale    = "\n" + `C {"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"Invalid or expired requestState"}}`
	two      = `"b~2"`
	three    = `"b~3"`
)

func playShared(t *testing.T, script string) {
	t.Helper()
	playOn(t, Options{Client: mcp.Modern, Key: []byte(strings.Repeat("k", 32))}, principals{}, hiShared+script)
}

func TestASharedServerAsks(t *testing.T) {
	for name, script := range map[string]string{
		"one call": called(1, two, alice) + asksFor(1) + soon + put(1, 1) + back(2, 1, alice, given(1)) + ended(two, 2),
		"several things at once are one answer": called(1, two, alice) + asksFor(1) + asksFor(2) + soon + put(1, 1, 2) +
			back(2, 1, alice, given(1)+given(2)) + ended(two, 2),
		"nobody":                        asksFor(1) + soon + declined(1, -32601, notAsked),
		"a client that cannot be asked": called(1, "1", deaf) + asksFor(1) + soon + declined(1, -32601, "Method not found") + ended("1", 1),
		"what one can be asked, and what not": called(1, two, by("alice", "a", `{"roots":{}}`, "")) + asksFor(1) + `
s {"jsonrpc":"2.0","id":"q2","method":"roots/list"}` + soon + declined(1, -32601, "Method not found") + `
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"ask1":{"method":"roots/list","params":{}}},"requestState":"$new"}}`,
		"the other call ends": called(1, two, alice) + called(2, three, bob) + asksFor(1) + soon + ended(two, 1) + put(2, 1) +
			back(3, 2, bob, given(1)) + ended(three, 3),
		"the other call, of a client that cannot be asked, ends": called(1, two, alice) + called(2, "2", deaf) + asksFor(1) + soon +
			ended("2", 2) + put(1, 1),
		"the call that can be asked ends: it was the other one": called(1, two, alice) + called(2, "2", deaf) + asksFor(1) + soon +
			ended(two, 1) + declined(1, -32601, "Method not found"),
		"a call that comes later is none that has asked": called(1, two, alice) + asksFor(1) + called(2, three, bob) + soon + put(1, 1),
		"while one waits for its client, another asks": called(1, two, alice) + asksFor(1) + soon + put(1, 1) + called(2, three, bob) +
			asksFor(2) + soon + put(2, 2) + back(3, 2, bob, given(2)),
		"it asks the one that waits something more": called(1, two, alice) + asksFor(1) + soon + put(1, 1) + asksFor(2) + soon +
			back(2, 1, alice, given(1)+put(2, 2)),
		"two clients' calls ask: the later question is refused": called(1, two, alice) + called(2, three, bob) + asksFor(1) + asksFor(2) +
			soon + declined(2, -32603, notClear) + ended(three, 2) + put(1, 1),
		"two calls of one client ask: likewise": called(1, two, alice) + called(2, three, alice) + asksFor(1) + asksFor(2) +
			soon + declined(2, -32603, notClear) + ended(three, 2) + put(1, 1),
		"it does not become clear": called(1, two, alice) + called(2, three, bob) + asksFor(1) + soon + "\nt 29900ms" + declined(1, -32601, tooLong) +
			ended(two, 1) + ended(three, 2),
		"it withdraws its question": called(1, two, alice) + called(2, three, bob) + asksFor(1) + soon + `
s {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}}` + ended(two, 1),
		"it begins a call anew that was waiting for its client": called(1, two, alice) + asksFor(1) + soon + put(1, 1) +
			called(2, three, bob) + `
s {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}}` + asksFor(2) + soon + ended(three, 2) +
			back(3, 1, alice, put(3, 2)),
		"nobody goes on with what another was given": called(1, two, alice) + asksFor(1) + soon + put(1, 1) +
			back(2, 1, bob, fmt.Sprintf(stale, 2)) + back(3, 1, by("bob", "a", canBeAsked, ""), fmt.Sprintf(stale, 3)) +
			back(4, 1, by("alice", "b", canBeAsked, ""), fmt.Sprintf(stale, 4)) + back(5, 1, alice, given(1)),
		"the client that was asked never comes back": called(1, two, alice) + asksFor(1) + soon + put(1, 1) + `
t 10m
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b~2","reason":"the client did not answer in time"}}` + declined(1, -32603, hasLeft),
	} {
		t.Run(name, func(t *testing.T) { playShared(t, script) })
	}
}

// A call that was withdrawn may still ask until the server has answered it.
func TestASharedServerAsksForACallThatWasWithdrawn(t *testing.T) {
	before := called(1, two, alice) + called(2, three, bob)
	for name, script := range map[string]string{
		"it was the only one":                       called(1, two, alice) + asksFor(1) + cancelled(1, two) + soon + declined(1, -32603, hasLeft),
		"the other one ends":                        before + asksFor(1) + soon + cancelled(1, two) + ended(three, 2) + declined(1, -32603, hasLeft),
		"the server answers it all the same":        before + asksFor(1) + soon + cancelled(1, two) + "\no " + two + put(2, 1),
		"it is not answered":                        before + asksFor(1) + soon + cancelled(1, two) + "\nt 2s" + declined(1, -32601, tooLong),
		"both were":                                 before + asksFor(1) + soon + cancelled(1, two) + cancelled(2, three) + "\no " + two + declined(1, -32603, hasLeft),
		"another client's is a suspect for a while": before + cancelled(1, two) + "\nt 29s" + asksFor(1) + soon + ended(three, 2) + declined(1, -32603, hasLeft),
		"also while nothing else runs": before + asksFor(1) + soon + ended(two, 1) + put(2, 1) + called(3, `"b~4"`, alice) +
			cancelled(3, `"b~4"`) + "\nt 3s" + asksFor(2) + soon + declined(2, -32603, hasLeft),
		"one of a tool that has asked before, for long": called(1, two, alice) + asksFor(1) + soon + put(1, 1) + back(2, 1, alice, given(1)) +
			ended(two, 2) + sent(3, 1, alice) + passed(three, 1) + cancelled(3, three) + called(4, `"b~4"`, bob) + "\nt 9m59s" + asksFor(2) + soon +
			ended(`"b~4"`, 4) + declined(2, -32603, hasLeft),
		"one that has asked and heard of it, for a moment": before + asksFor(1) + soon + cancelled(1, two) + ended(three, 2) +
			declined(1, -32603, hasLeft) + called(4, `"b~4"`, bob) + "\nt 2s" + asksFor(2) + soon + put(4, 2),
		"but not for ever":       before + cancelled(1, two) + "\nt 30s" + asksFor(1) + soon + put(2, 1),
		"nor in another process": before + cancelled(1, two) + "\nr" + asksFor(1) + soon + put(2, 1),
		"the client's own is one while it may not have heard": called(1, two, alice) + called(2, three, alice) + cancelled(1, two) +
			"\nt 1s" + asksFor(1) + soon + put(2, 1), // authenticated: it may as well be asked there
		"of whom it is not certain who it is": called(1, two, by("", "a", canBeAsked, "")) + called(2, three, by("", "a", canBeAsked, "")) +
			cancelled(1, two) + "\nt 1s" + asksFor(1) + soon + ended(three, 2) + declined(1, -32603, hasLeft),
		"and when it must have heard": called(1, two, by("", "a", canBeAsked, "")) + called(2, three, by("", "a", canBeAsked, "")) +
			cancelled(1, two) + "\nt 2s" + asksFor(1) + soon + put(2, 1),
	} {
		t.Run(name, func(t *testing.T) { playShared(t, script) })
	}
}

// Calls of tools that have asked before go one at a time: then it is clear which of them asks.
func TestOneAtATime(t *testing.T) {
	const four, five = `"b~4"`, `"b~5"`
	known := called(1, two, alice) + asksFor(1) + soon + put(1, 1) + back(2, 1, alice, given(1)) + ended(two, 2) +
		sent(3, 1, alice) + passed(three, 1) + sent(4, 1, bob)
	for name, script := range map[string]string{
		"the first one asks":          known + asksFor(2) + soon + put(3, 2) + passed(four, 1) + asksFor(3) + soon + put(4, 3),
		"it ends":                     known + ended(three, 3) + passed(four, 1),
		"it is withdrawn":             known + cancelled(3, three) + passed(four, 1),
		"it only works":               known + "\nt 24900ms\nt 100ms" + passed(four, 1),
		"nobody waits longer":         known + "\nt 20s" + sent(5, 1, alice) + "\nt 5s" + passed(four, 1) + "\nt 20s" + passed(five, 1),
		"the second one is withdrawn": known + "\n" + `c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}` + "\nt 25s",
		"other tools do not wait":     known + called(5, four, bob) + ended(three, 3) + passed(five, 1),
		"nor who cannot be asked":     known + sent(5, 1, deaf) + passed("5", 1) + ended(three, 3) + ended("5", 5) + passed(four, 1),
		"a third one waits for both":  known + sent(5, 1, alice) + ended(three, 3) + passed(four, 1) + ended(four, 4) + passed(five, 1),
		"a tool beside whose call another one asks does not wait": called(1, two, alice) + called(2, three, bob) + asksFor(1) + soon + ended(two, 1) +
			put(2, 1) + back(3, 2, bob, given(1)) + ended(three, 3) + sent(4, 1, alice) + passed(four, 1) + sent(5, 1, bob) + passed(five, 1),
		"an answer waits for its turn": known + asksFor(2) + soon + put(3, 2) + passed(four, 1) + back(5, 1, alice, "") + ended(four, 4) + given(2),
	} {
		t.Run(name, func(t *testing.T) { playShared(t, script) })
	}
}

// Whoever withdraws very many calls does not make the bridge forget that of another client.
func TestVeryManyAreWithdrawn(t *testing.T) {
	who := principals{}
	b := carried(New(Options{Client: mcp.Modern, Key: make([]byte, 32), Principal: who.of}))
	call := func(id int, by string) Output {
		return b.FromClient(who.take(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t",%s}}`, id, by)), start)
	}
	withdraw := func(id int) {
		b.FromClient(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id), start)
	}
	call(1, alice)
	b.FromServer([]byte(`{"jsonrpc":"2.0","id":"b~1","result":`+initialized+`}`), start)
	withdraw(1)
	for id := range 2 * queueMost {
		call(id+2, bob)
		withdraw(id + 2)
	}
	call(9999, bob)
	b.FromServer([]byte(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"for alice"}}`), start)
	out := b.Tick(start.Add(gatherFor))
	if len(out.ToClient) > 0 {
		t.Errorf("bob was asked: %s", out.ToClient)
	}
	if out = b.Tick(start.Add(unclearFor)); len(out.ToServer) != 1 || len(out.ToClient) > 0 {
		t.Errorf("the server was told %q, clients %q", out.ToServer, out.ToClient)
	}
	if _, all := b.side.(*modernSide).Calls.apart(); len(all) > queueMost {
		t.Errorf("%d withdrawn calls are remembered", len(all))
	}
}

// What a shared server logs is handed on if only one call can have led to it.
func TestASharedServerLogs(t *testing.T) {
	loud := by("alice", "a", `{}`, `,"io.modelcontextprotocol/logLevel":"info"`)
	const (
		logs  = "\n" + `s {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`
		heard = "\n" + `C {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`
	)
	begin := `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t1",` + loud + `}}
S {"jsonrpc":"2.0","id":"b~2","method":"logging/setLevel","params":{"level":"info"}}
S {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t1"}}
s {"jsonrpc":"2.0","id":"b~2","result":{}}`
	for name, script := range map[string]string{
		"one call":           begin + logs + heard + ended("1", 1) + logs,
		"below its level":    begin + strings.Replace(logs, "error", "debug", 1),
		"and another one":    begin + called(2, "2", deaf) + logs + ended("2", 2) + logs + heard,
		"and one that waits": called(2, two, bob) + asksFor(1) + soon + put(2, 1) + strings.ReplaceAll(begin, two, three) + logs,
		"and one that was withdrawn": called(2, two, bob) + cancelled(2, two) + strings.ReplaceAll(begin, two, three) + logs +
			"\no " + two + logs + heard,
	} {
		t.Run(name, func(t *testing.T) { playShared(t, script) })
	}
}
