package bridge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A server that never has enough is stopped: after ten rounds the client gets its answer.
func TestRoundsEnd(t *testing.T) {
	script := hi + `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}
S {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{$meta}}}
s {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}
`
	const last = `{"content":[{"type":"text","text":"The server asked for more input than 10 rounds can give."}],"isError":true}`
	for round := 1; round <= roundsMost; round++ {
		question, again := fmt.Sprint(askedFrom+2*round+1), fmt.Sprintf(`"b~%d"`, 2*round+2)
		script += `
C {"jsonrpc":"2.0","id":` + question + `,"method":"roots/list"}
c {"jsonrpc":"2.0","id":` + question + `,"result":{"roots":[]}}
S {"jsonrpc":"2.0","id":` + again + `,"method":"tools/call","params":{"name":"t","_meta":{$meta},"inputResponses":{"a":{"roots":[]}}}}
s {"jsonrpc":"2.0","id":` + again + `,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}}
`
	}
	play(t, mcp.Legacy, script+`C {"jsonrpc":"2.0","id":1,"result":`+last+`}`)
}

// A legacy server that never has enough is refused the eleventh question; the call goes on without it.
func TestParkedRoundsEnd(t *testing.T) {
	script := hiModern + `
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",` + able + `}}
S {"jsonrpc":"2.0","id":"b~2","method":"tools/call","params":{"name":"t"}}
`
	for round := range roundsMost {
		script += strings.ReplaceAll(`
s {"jsonrpc":"2.0","id":#,"method":"roots/list"}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"ask1":{"method":"roots/list","params":{}}},"requestState":"$new"}}
c {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"requestState":"$state","inputResponses":{"ask1":{"roots":[]}},"name":"t",`+able+`}}
S {"jsonrpc":"2.0","id":#,"result":{"roots":[]}}
`, "#", fmt.Sprint(round))
	}
	play(t, mcp.Modern, script+`
s {"jsonrpc":"2.0","id":"more","method":"roots/list"}
S {"jsonrpc":"2.0","id":"more","error":{"code":-32603,"message":"the client is not asked more than 10 times in one call"}}
s {"jsonrpc":"2.0","id":"b~2","result":{"content":[]}}
C {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}`)
}
