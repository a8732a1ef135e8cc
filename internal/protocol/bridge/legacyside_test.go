package bridge

import (
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

const hi = `
c {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}},"tasks":{}},"clientInfo":{"name":"c","version":"1"}}}
S {"jsonrpc":"2.0","id":"b~1","method":"server/discover","params":{"_meta":{$meta}}}
s {"jsonrpc":"2.0","id":"b~1","result":` + discovered + `}
C {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"prompts":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}
c {"jsonrpc":"2.0","method":"notifications/initialized"}
S {"jsonrpc":"2.0","id":"b~2","method":"subscriptions/listen","params":{"_meta":{$meta},"notifications":{"toolsListChanged":true,"resourcesListChanged":true}}}
s {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b~2"},"notifications":{"toolsListChanged":true}}}
`

func TestLegacyClientBeforeAModernServer(t *testing.T) {
	for name, script := range map[string]string{
		"a call, what is foreign to either era taken out, the rest as it was": hi + `
c {"jsonrpc":"2.0", "x":1e2, "id":1.0, "method":"tools/call", "params":{"name":"<t>","arguments":{"n":9007199254740993},"task":{},"_meta":{"progressToken":7}}}
S {"jsonrpc":"2.0", "x":1e2, "id":1.0, "method":"tools/call", "params":{"name":"<t>","arguments":{"n":9007199254740993},"_meta":{$meta,"progressToken":7}}}
s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}
C {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}
s {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"structuredContent":5,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"k":1}}}
C {"jsonrpc":"2.0","id":1.0,"result":{"content":[{"type":"text","text":"5"}],"_meta":{"k":1}}}`,
		"ping, log level and what there is not": hi + `
c {"jsonrpc":"2.0","id":1,"method":"ping"}
C {"jsonrpc":"2.0","id":1,"result":{}}
c {"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}}
C {"jsonrpc":"2.0","id":2,"result":{}}
c {"jsonrpc":"2.0","id":3,"method":"tools/list"}
S {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{$meta,"io.modelcontextprotocol/logLevel":"warning"}}}
c {"jsonrpc":"2.0","id":4,"method":"tasks/list"}
C {"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"Method not found"}}
c {"jsonrpc":"2.0","id":3,"method":"ping"}
C {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"invalid request: a request with this id is still in flight"}}
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
s {"jsonrpc":"2.0","id":3,"result":{}}
c {"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"loud"}}
C {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"invalid params: no such log level"}}`,
		"input that is asked for where there are no rounds": hi + `
c {"jsonrpc":"2.0","id":1,"method":"prompts/list"}
S {"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"_meta":{$meta}}}
s {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{}}}
C {"jsonrpc":"2.0","id":1,"result":{"inputRequests":{}}}`,
		"a number and its text are two ids": hi + `
c {"jsonrpc":"2.0","id":5,"method":"tools/list"}
S {"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"_meta":{$meta}}}
c {"jsonrpc":"2.0","id":"5","method":"prompts/list"}
S {"jsonrpc":"2.0","id":"5","method":"prompts/list","params":{"_meta":{$meta}}}
c {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}
s {"jsonrpc":"2.0","id":5,"result":{"tools":[]}}
C {"jsonrpc":"2.0","id":5,"result":{"tools":[]}}`,
		"another round has the log level of now": hi + `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}
S {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{$meta}}}
s {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}
C {"jsonrpc":"2.0","id":1000000003,"method":"roots/list"}
c {"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}}
C {"jsonrpc":"2.0","id":2,"result":{}}
c {"jsonrpc":"2.0","id":1000000003,"result":{"roots":[]}}
S {"jsonrpc":"2.0","id":"b~4","method":"tools/call","params":{"name":"t","_meta":{$meta,"io.modelcontextprotocol/logLevel":"warning"},"inputResponses":{"a":{"roots":[]}}}}
s {"jsonrpc":"2.0","id":"b~4","result":{"resultType":"complete","content":[]}}
C {"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		"two questions at once, and another round": hi + `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":"p"}}}
S {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{$meta,"progressToken":"p"}}}
s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2}}
C {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":2}}
s {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"state-1","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x"}}}}}
C {"jsonrpc":"2.0","id":1000000003,"method":"roots/list"}
C {"jsonrpc":"2.0","id":1000000004,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x","elicitationId":"1000000004"}}
c {"jsonrpc":"2.0","id":1000000004,"result":{"action":"accept"}}
c {"jsonrpc":"2.0","id":1000000004,"result":{"action":"decline"}}
c {"jsonrpc":"2.0","id":"1000000003","result":{"roots":[ ]}}
S {"jsonrpc":"2.0","id":"b~5","method":"tools/call","params":{"name":"t","_meta":{$meta,"progressToken":"p"},"inputResponses":{"a":{"roots":[ ]},"b":{"action":"accept"}},"requestState":"state-1"}}
s {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":3}}
C {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":3}}
s {"jsonrpc":"2.0","id":"b~5","result":{"resultType":"input_required","requestState":"state-2"}}
C {"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"1000000004"}}
t 499ms
t 1ms
S {"jsonrpc":"2.0","id":"b~6","method":"tools/call","params":{"name":"t","_meta":{$meta,"progressToken":"p"},"requestState":"state-2"}}
s {"jsonrpc":"2.0","id":"b~6","result":{"resultType":"complete","content":[]}}
C {"jsonrpc":"2.0","id":1,"result":{"content":[]}}`,
		"a client that does not answer, and one that refuses": hi + `
c {"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}
S {"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p","_meta":{$meta}}}
s {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}}}}
C {"jsonrpc":"2.0","id":1000000003,"method":"roots/list"}
C {"jsonrpc":"2.0","id":1000000004,"method":"roots/list"}
c {"jsonrpc":"2.0","id":1000000003,"error":{"code":-1,"message":"no"}}
C {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1000000004,"reason":"the request has failed"}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"The client did not answer what the server asked: no"}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"p"}}
S {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"p","_meta":{$meta}}}
s {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}
C {"jsonrpc":"2.0","id":1000000005,"method":"roots/list"}
t 10m
C {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1000000005,"reason":"the request has failed"}}
C {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"The client did not answer what the server asked within 10m0s."}],"isError":true}}
c {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"p"}}
S {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"p","_meta":{$meta}}}
s {"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}}}}
C {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"The server asked for something that this client has not declared (sampling/createMessage)."}],"isError":true}}`,
		"subscriptions go from one listen to the next": hi + `
c {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"f:/a"}}
S {"jsonrpc":"2.0","id":"b~3","method":"subscriptions/listen","params":{"_meta":{$meta},"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["f:/a"]}}}
c {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"f:/b"}}
s {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b~3"}}}
s {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b~2"}}}
C {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}
s {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b~3"},"notifications":{"toolsListChanged":true,"resourceSubscriptions":["f:/a"]}}}
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b~2","reason":"another subscription has taken its place"}}
S {"jsonrpc":"2.0","id":"b~4","method":"subscriptions/listen","params":{"_meta":{$meta},"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["f:/a","f:/b"]}}}
C {"jsonrpc":"2.0","id":1,"result":{}}
s {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"f:/a/1","_meta":{"io.modelcontextprotocol/subscriptionId":"b~3"}}}
C {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"f:/a/1"}}
s {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b~4"},"notifications":{"resourceSubscriptions":["f:/a"]}}}
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b~3","reason":"another subscription has taken its place"}}
C {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"the server does not tell of changes of this resource"}}
s {"jsonrpc":"2.0","id":"b~4","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"b~4"}}}
t 1s
S {"jsonrpc":"2.0","id":"b~5","method":"subscriptions/listen","params":{"_meta":{$meta},"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["f:/a"]}}}
s {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b~5"},"notifications":{"resourceSubscriptions":["f:/a"]}}}
C {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"f:/a"}}
c {"jsonrpc":"2.0","id":3,"method":"resources/unsubscribe","params":{"uri":"f:/a"}}
S {"jsonrpc":"2.0","id":"b~6","method":"subscriptions/listen","params":{"_meta":{$meta},"notifications":{"toolsListChanged":true,"resourcesListChanged":true}}}
C {"jsonrpc":"2.0","id":3,"result":{}}
s {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"f:/a","_meta":{"io.modelcontextprotocol/subscriptionId":"b~5"}}}`,
		"a subscription while the server is down, and one that it does not answer": hi + `
c {"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"f:/a"}}
S {"jsonrpc":"2.0","id":"b~3","method":"subscriptions/listen","params":{"_meta":{$meta},"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["f:/a"]}}}
s {"jsonrpc":"2.0","id":"b~3","error":{"code":-32603,"message":"server restarting: exit status 1","data":{"retryable":true}}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"server restarting: exit status 1","data":{"retryable":true}}}
c {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"f:/a"}}
S {"jsonrpc":"2.0","id":"b~4","method":"subscriptions/listen","params":{"_meta":{$meta},"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["f:/a"]}}}
t 20s
S {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"b~4","reason":"another subscription has taken its place"}}
C {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the server has not answered in time; it is safe to retry"}}
c {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"f:/a"}}
S {"jsonrpc":"2.0","id":"b~5","method":"subscriptions/listen","params":{"_meta":{$meta},"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["f:/a"]}}}
s {"jsonrpc":"2.0","id":"b~5","error":{"code":-32601,"message":"Method not found"}}
C {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"the server does not tell of changes of this resource"}}`,
		"a script that writes everything at once, to a server of another version": `
c {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"1","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
S {"jsonrpc":"2.0","id":"b~1","method":"server/discover","params":{"_meta":{$version,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}
c {"jsonrpc":"2.0","method":"notifications/initialized"}
c {"jsonrpc":"2.0","id":1,"method":"tools/list"}
s {"jsonrpc":"2.0","id":"b~1","error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}}
S {"jsonrpc":"2.0","id":"b~2","method":"server/discover","params":{"_meta":{$version,"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}
s {"jsonrpc":"2.0","id":"b~2","error":{"code":-32022,"message":"m","data":{"supported":["2026-07-28"],"requested":"2026-07-28"}}}
C {"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"the server speaks another version of the protocol than 2026-07-28"}}
C {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server speaks another version of the protocol than 2026-07-28"}}`,
		"an id like the bridge's own": hi + `
c {"jsonrpc":"2.0","id":"b\u007e2","method":"tools/list","params":{}}
S {"jsonrpc":"2.0","id":"b~3","method":"tools/list","params":{"_meta":{$meta}}}
s {"jsonrpc":"2.0","id":"b~3","result":{"tools":[]}}
C {"jsonrpc":"2.0","id":"b\u007e2","result":{"tools":[]}}`,
	} {
		t.Run(name, func(t *testing.T) { play(t, mcp.Legacy, script) })
	}
}
