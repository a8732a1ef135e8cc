package gateway

import (
	"strconv"
	"strings"
	"testing"
	"time"
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

// A client that has closed its end can answer no question: the server hears so at once, and the call ends with what the server makes of it.
func TestWhoHasLeftAnswersNoQuestion(t *testing.T) {
	w := newWorld(t, Options{})
	w.plan("a", plan{tools: []string{"hang"}})
	w.serve(named("a"))
	c := w.legacy()
	c.tools()
	call := c.call("1", "a_hang")
	p := w.of("a")[0]
	ask := func(id string) {
		p.say(`{"jsonrpc":"2.0","id":%q,"method":"elicitation/create","params":{"message":"?"}}`, id)
	}
	ask("before")
	left := false
	c.CloseWhenIdle(w.now, 10*time.Second, func() { left = true })
	w.settle()
	ask("after")
	w.settle()
	for i, id := range []string{"before", "after"} {
		if m := p.told[len(p.told)-2+i]; m.Raw != `{"jsonrpc":"2.0","id":"`+id+`","error":{"code":-32603,"message":"the client has left"}}` {
			t.Errorf("the server got %s", m.Raw)
		}
	}
	if left {
		t.Error("the session is over before its call")
	}
	p.answer(p.open[0], `"nobody answers"`)
	w.settle()
	if got := call.lines[len(call.lines)-1]; !strings.Contains(got, `"id":1,"result":"nobody answers"`) {
		t.Errorf("the call's answer: %s", got)
	}
	w.pass(time.Millisecond)
	if !left {
		t.Error("the session is not over")
	}
}
