package gateway

import (
	"strconv"
	"strings"
	"testing"
)

// Requests to a client have whole numbers as ids and progress tokens, since some clients read no other; an answer whose id has
// another form of the number reaches the server.
func TestQuestionsHaveWholeNumbers(t *testing.T) {
	for _, form := range []string{`%`, `"%"`, `%.0`} {
		w := newWorld(t, Options{})
		w.plan("a", plan{tools: []string{"hang"}})
		w.serve(named("a"))
		c := w.legacy()
		c.tools()
		call := c.call("1", "a_hang")
		p := w.of("a")[0]
		p.say(`{"jsonrpc":"2.0","id":"q~1","method":"elicitation/create","params":{"message":"?","_meta":{"progressToken":"t"}}}`)
		asked := parse(t, call.lines[0])
		for _, raw := range []string{string(asked.ID), string(asked.Params.Meta["progressToken"])} {
			if _, err := strconv.ParseUint(raw, 10, 31); err != nil {
				t.Errorf("the client is asked with %s", raw)
			}
		}
		id := strings.Replace(form, "%", string(asked.ID), 1)
		c.ask(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + id + `,"progress":1}}`)
		if m, _ := p.last("notifications/progress"); string(m.Params.ProgressToken) != `"t"` {
			t.Errorf("progress of %s: the server got %s", id, m.Raw)
		}
		c.ask(`{"jsonrpc":"2.0","id":` + id + `,"result":{"mine":true}}`)
		if m := p.told[len(p.told)-1]; m.Raw != `{"jsonrpc":"2.0","id":"q~1","result":{"mine":true}}` {
			t.Errorf("answer to %s: the server got %s", id, m.Raw)
		}
	}
}
