package bridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

const able = `"_meta":{$meta}`

const hiModern = `
c {"jsonrpc":"2.0","id":0,"method":"server/discover","params":{` + able + `}}
S {"jsonrpc":"2.0","id":"b~1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"c","version":"1"}}}
s {"jsonrpc":"2.0","id":"b~1","result":` + initialized + `}
S {"jsonrpc":"2.0","method":"notifications/initialized"}
C {"jsonrpc":"2.0","id":0,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
`

// asks is a call during which the server has asked something.
const asks = `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":2},"_meta":{"progressToken":"p",$meta}}}
S {"jsonrpc":"2.0","id":"b~2","method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":2},"_meta":{"progressToken":"b~2"}}}
s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b~2","progress":1}}
C {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
s {"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"m","mode":"url","url":"https://x","elicitationId":"e"}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"ask1":{"method":"elicitation/create","params":{"message":"m","mode":"url","url":"https://x"}}},"requestState":"$new"}}
`

func TestModernClientBeforeALegacyServer(t *testing.T) {
	for name, script := range map[string]string{
		"a list, and what is missing or gone": hiModern + `
c {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{$meta,"k":1}}}
S {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"k":1}}}
s {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},{"name":"b","inputSchema":{"type":"object"},"x":1}]}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"b","inputSchema":{"type":"object"},"x":1}]}}
c {"jsonrpc":"2.0","id":1,"method":"tools/list"}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: _meta lacks io.modelcontextprotocol/protocolVersion"}}
c {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01"}}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2027-01-01"}}}
c {"jsonrpc":"2.0","id":1,"method":"ping","params":{` + able + `}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
c {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"f:/a",` + able + `}}
S {"jsonrpc":"2.0","id":"b~2","method":"resources/read","params":{"uri":"f:/a"}}
s {"jsonrpc":"2.0","id":"b~2","error":{"code":-32002,"message":"none"}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"none"}}
s {"jsonrpc":"2.0","id":1,"method":"ping"}
S {"jsonrpc":"2.0","id":1,"result":{}}`,
		"what it says while the server is greeted comes after that": strings.Replace(hiModern, `s {`, `
c {"jsonrpc":"2.0","method":"notifications/x"}
s {`, 1) + `
S {"jsonrpc":"2.0","method":"notifications/x"}`,
		"the server asks, the client answers, the call goes on": hiModern + asks + `
s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b~2","progress":2}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"b":2, "a":1},"_meta":{"progressToken":"q",$meta}}}
C {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"q","progress":2}}
S {"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}
s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b~2","progress":3}}
C {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"q","progress":3}}
s {"jsonrpc":"2.0","id":"b~2","result":{"content":[]}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","name":"t","arguments":{"b":2,"a":1},` + able + `}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid or expired requestState"}}`,
		"a state is good for what was called only": hiModern + asks + `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","name":"other","arguments":{"a":1,"b":2},` + able + `}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid or expired requestState"}}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"requestState":"A$state","name":"t","arguments":{"a":1,"b":2},` + able + `}}
C {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Invalid or expired requestState"}}
t 10m
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b~2","reason":"the client did not answer in time"}}
S {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"the client does not wait for this any more"}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","name":"t","arguments":{"a":1,"b":2},` + able + `}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid or expired requestState"}}`,
		"the server withdraws its question and finishes": hiModern + asks + `
s {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
s {"jsonrpc":"2.0","id":"b~2","result":{"content":[],"isError":true}}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"a":1,"b":2},` + able + `}}
C {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[],"isError":true}}`,
		"a request that was answered with questions cannot be cancelled any more, its next round can": hiModern + asks + `
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"a":1,"b":2},` + able + `}}
S {"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b~2"}}
s {"jsonrpc":"2.0","id":"b~2","result":{"content":[]}}`,
		"an answer is missing, and the server asks on meanwhile": hiModern + asks + `
s {"jsonrpc":"2.0","id":8,"method":"roots/list"}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"requestState":"$state","name":"t","arguments":{"a":1,"b":2},` + able + `}}
C {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"ask1":{"method":"elicitation/create","params":{"message":"m","mode":"url","url":"https://x"}},"ask2":{"method":"roots/list","params":{}}},"requestState":"$new"}}
c {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask2":{"roots":[]},"ask1":{"action":"cancel"}},"name":"t","arguments":{"a":1,"b":2},` + able + `}}
S {"jsonrpc":"2.0","id":7,"result":{"action":"cancel"}}
S {"jsonrpc":"2.0","id":8,"result":{"roots":[]}}`,
		"calls take turns once the server has asked": hiModern + asks + `
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"u",` + able + `}}
S {"jsonrpc":"2.0","id":"b~3","method":"tools/call","params":{"name":"u"}}
c {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"v",` + able + `}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"a":1,"b":2},` + able + `}}
c {"jsonrpc":"2.0","id":4,"method":"tools/list","params":{` + able + `}}
S {"jsonrpc":"2.0","id":4,"method":"tools/list","params":{}}
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
s {"jsonrpc":"2.0","id":"b~3","result":{"content":[]}}
S {"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}
C {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}`,
		"an answer waits for another call 25 s at most": hiModern + asks + `
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"u",` + able + `}}
S {"jsonrpc":"2.0","id":"b~3","method":"tools/call","params":{"name":"u"}}
c {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"v",` + able + `}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"a":1,"b":2},` + able + `}}
t 24s
t 1s
S {"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}
s {"jsonrpc":"2.0","id":"b~2","result":{"content":[]}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
t 10m
s {"jsonrpc":"2.0","id":"b~3","result":{"content":[]}}
S {"jsonrpc":"2.0","id":"b~4","method":"tools/call","params":{"name":"v"}}
C {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}`,
		"a question that could belong to two calls waits until one is left": hiModern + `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",` + able + `}}
S {"jsonrpc":"2.0","id":"b~2","method":"tools/call","params":{"name":"t"}}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"u",` + able + `}}
S {"jsonrpc":"2.0","id":"b~3","method":"tools/call","params":{"name":"u"}}
s {"jsonrpc":"2.0","id":"x","method":"roots/list"}
s {"jsonrpc":"2.0","id":"b~2","result":{"content":[]}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
C {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"ask1":{"method":"roots/list","params":{}}},"requestState":"$new"}}`,
		"a question when nothing runs waits for the next call, but not for ever": hiModern + `
s {"jsonrpc":"2.0","id":"x","method":"roots/list"}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"u",` + able + `}}
S {"jsonrpc":"2.0","id":"b~2","method":"tools/call","params":{"name":"u"}}
C {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"ask1":{"method":"roots/list","params":{}}},"requestState":"$new"}}
s {"jsonrpc":"2.0","id":"b~2","result":{"content":[]}}
s {"jsonrpc":"2.0","id":"y","method":"roots/list"}
t 30s
S {"jsonrpc":"2.0","id":"y","error":{"code":-32601,"message":"the client cannot be asked: it is not clear which of its calls this is for"}}`,
		"a URL that has to be opened first": hiModern + `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",` + able + `}}
S {"jsonrpc":"2.0","id":"b~2","method":"tools/call","params":{"name":"t"}}
s {"jsonrpc":"2.0","id":"b~2","error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://x","message":"m"}]}}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"ask1":{"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"m"}}},"requestState":"$new"}}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t",` + able + `}}
S {"jsonrpc":"2.0","id":"b~3","method":"tools/call","params":{"name":"t"}}
s {"jsonrpc":"2.0","id":"b~3","error":{"code":-32042,"message":"m","data":{"elicitations":[]}}}
C {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"elicitation":{"url":{}}}}}}`,
		"a URL that the server wants opened before its client has answered something else": hiModern + asks + `
s {"jsonrpc":"2.0","id":"b~2","error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"f","url":"https://y","message":"m"}]}}}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"a":1,"b":2},` + able + `}}
C {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"ask1":{"method":"elicitation/create","params":{"mode":"url","url":"https://y","message":"m"}}},"requestState":"$new"}}
c {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"a":1,"b":2},` + able + `}}
S {"jsonrpc":"2.0","id":"b~3","method":"tools/call","params":{"name":"t","arguments":{"a":1,"b":2}}}
s {"jsonrpc":"2.0","id":"b~3","result":{"content":[]}}
C {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","content":[]}}`,
		"listening": hiModern + `
c {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["f:/a","f:/b"]},` + able + `}}
S {"jsonrpc":"2.0","id":"b~2","method":"resources/subscribe","params":{"uri":"f:/a"}}
S {"jsonrpc":"2.0","id":"b~3","method":"resources/subscribe","params":{"uri":"f:/b"}}
s {"jsonrpc":"2.0","id":"b~2","result":{}}
s {"jsonrpc":"2.0","id":"b~3","error":{"code":-32002,"message":"none"}}
C {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["f:/a"]}}}
c {"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["f:/a"]},` + able + `}}
C {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":9},"notifications":{"resourceSubscriptions":["f:/a"]}}}
s {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
C {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
s {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"f:/a"}}
C {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"f:/a","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}
C {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"f:/a","_meta":{"io.modelcontextprotocol/subscriptionId":9}}}
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}
S {"jsonrpc":"2.0","id":"b~4","method":"resources/unsubscribe","params":{"uri":"f:/a"}}
s {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		"listening anew under the same id before the server has answered": hiModern + `
c {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["f:/a"]},` + able + `}}
S {"jsonrpc":"2.0","id":"b~2","method":"resources/subscribe","params":{"uri":"f:/a"}}
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l"}}
S {"jsonrpc":"2.0","id":"b~3","method":"resources/unsubscribe","params":{"uri":"f:/a"}}
c {"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["f:/b"]},` + able + `}}
S {"jsonrpc":"2.0","id":"b~4","method":"resources/subscribe","params":{"uri":"f:/b"}}
s {"jsonrpc":"2.0","id":"b~2","result":{}}
s {"jsonrpc":"2.0","id":"b~3","result":{}}
s {"jsonrpc":"2.0","id":"b~4","result":{}}
C {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"},"notifications":{"resourceSubscriptions":["f:/b"]}}}`,
		"log messages while somebody asks for them": hiModern + `
s {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}
c {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{$meta,"io.modelcontextprotocol/logLevel":"warning"}}}
S {"jsonrpc":"2.0","id":"b~2","method":"logging/setLevel","params":{"level":"warning"}}
S {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}
c {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{` + able + `}}
S {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}
s {"jsonrpc":"2.0","id":"b~2","result":{}}
s {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}
s {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}
C {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}
s {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}
s {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`,
		"a log level for the rest of a call": hiModern + asks + `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"a":1,"b":2},"_meta":{"io.modelcontextprotocol/logLevel":"debug",$meta}}}
S {"jsonrpc":"2.0","id":"b~3","method":"logging/setLevel","params":{"level":"debug"}}
S {"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}
s {"jsonrpc":"2.0","id":"b~3","result":{}}`,
		"progress while the client is asked, but for the last, is told to nobody": hiModern + asks + `
s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b~2","progress":2}}
s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b~2","progress":3,"message":"m"}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"action":"accept"}},"name":"t","arguments":{"a":1,"b":2},"_meta":{"progressToken":"q",$meta}}}
C {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"q","progress":3,"message":"m"}}
S {"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}`,
		"a request that can do more has the server greeted anew": `
c {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{$version,"io.modelcontextprotocol/clientCapabilities":{}}}}
S {"jsonrpc":"2.0","id":"b~1","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"unknown","version":"0"}}}
s {"jsonrpc":"2.0","id":"b~1","error":{"code":-32603,"message":"no"}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server refused the handshake: no"}}
c {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{$version,"io.modelcontextprotocol/clientCapabilities":{}}}}
S {"jsonrpc":"2.0","id":"b~2","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"unknown","version":"0"}}}
s {"jsonrpc":"2.0","id":"b~2","result":` + initialized + `}
S {"jsonrpc":"2.0","method":"notifications/initialized"}
S {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}
s {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[]}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{$version,"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}
S {"jsonrpc":"2.0","id":"b~3","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"unknown","version":"0"}}}
s {"jsonrpc":"2.0","id":"b~3","result":` + initialized + `}
S {"jsonrpc":"2.0","method":"notifications/initialized"}
S {"jsonrpc":"2.0","id":"b~4","method":"tools/call","params":{"name":"t"}}
s {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}
S {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`,
	} {
		t.Run(name, func(t *testing.T) { play(t, mcp.Modern, script) })
	}
}

// A state belongs to one client, one call, one round and one time; nobody without the key can make one.
func TestStates(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	made := func() *Call {
		return &Call{Wire: "1", Method: mcp.ToolsCall, Line: []byte(`{"params":{"name":"t","arguments":{"a":1}}}`), Rounds: 2, Expires: start,
			Party: party{Principal: "alice", Info: "{}"}}
	}
	state := string(stateOf(made(), key))
	if again := string(stateOf(made(), key)); again != state {
		t.Errorf("the same call has the states %s and %s", state, again)
	}
	if other := string(stateOf(made(), key[1:])); other == state {
		t.Error("another key makes the same state")
	}
	for name, change := range map[string]func(*Call){
		"another client":              func(t *Call) { t.Party.Principal = "bob" },
		"another client of that name": func(t *Call) { t.Party.Info = "" },
		"another call":                func(t *Call) { t.Wire = "2" },
		"other arguments":             func(t *Call) { t.Line = nil },
		"another round":               func(t *Call) { t.Rounds = 1 },
		"another time":                func(t *Call) { t.Expires = start.Add(time.Minute) },
	} {
		other := made()
		if change(other); string(stateOf(other, key)) == state {
			t.Errorf("%s has the same state", name)
		}
	}

	suspended, next := made(), made()
	suspended.State, next.Came = []byte(state), start.Add(-time.Second)
	s := newModernSide(&core{Calls: calls{suspended}}, Options{Key: key})
	for written, is := range map[string]*Call{
		state: suspended,
		fmt.Sprintf(`"\u%04x%s`, state[1], state[2:]): suspended, // the same text
		`"A` + state[1:]: nil,
		`5`:              nil,
	} {
		if next.State = []byte(written); s.meant(next) != is {
			t.Errorf("the state %s, brought for %s: the call that goes on is %v", written, state, s.meant(next))
		}
	}
}

// Whatever either side says, the bridge says messages only: what it makes of a message is one.
func FuzzBridge(f *testing.F) {
	f.Add(false, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`), []byte(`{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}}`))
	f.Add(true, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`), []byte(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`))
	f.Add(true, []byte(`[{"jsonrpc":"2.0","id":1}]`), []byte(`{"jsonrpc":"2.0","id":"b~1","error":{"code":-32042,"data":{"elicitations":[1]}}}`))
	f.Fuzz(func(t *testing.T, modern bool, client, server []byte) {
		opts := Options{Client: mcp.Legacy, Key: make([]byte, 32)}
		hello, answer := `{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"capabilities":{"roots":{},"elicitation":{}}}}`, discovered
		if modern {
			opts.Client = mcp.Modern
			hello, answer = `{"jsonrpc":"2.0","id":"h","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}}}`, initialized
		}
		b := carried(New(opts))
		b.FromClient([]byte(hello), start)
		b.FromServer([]byte(`{"jsonrpc":"2.0","id":"b~1","result":`+answer+`}`), start)
		var env jsonrpc.Envelope
		for _, out := range []Output{
			b.FromClient(client, start), b.FromServer(server, start), b.FromClient(client, start), b.FromServer(server, start),
			b.Tick(start.Add(time.Hour)), b.FromServer(server, start),
		} {
			for _, line := range append(lines(out.ToServer), out.ToClient...) {
				if err := env.Scan(line); err != nil {
					t.Errorf("%q is not a message: %v", line, err)
				}
			}
		}
	})
}
