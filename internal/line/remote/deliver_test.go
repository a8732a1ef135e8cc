package remote

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A server that gives a number back as a string has answered: the client gets its own id, and the log one line about it.
func TestAnswersWithTheNumberAsText(t *testing.T) {
	quoted := func(w http.ResponseWriter, r seen) { r.id = `"` + r.id + `"`; result(w, r, "{}") }
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"initialize": func(w http.ResponseWriter, r seen) { r.id = `"1"`; result(w, r, greeting) },
		"ping":       quoted,
		"tools/list": func(w http.ResponseWriter, r seen) {
			events(w, `data: {"jsonrpc":"2.0","id":"`+r.id+`.0","error":{"code":-32601,"message":"no"}}`+"\n\n")
		},
		"resources/list": func(w http.ResponseWriter, r seen) { r.id = `"8"`; result(w, r, "{}") },
	})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	c.say(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}`)
	if n := strings.Count(c.logged(), `the request 1 as "1"`); n != 1 || strings.Count(c.logged(), "taken for the same") != 1 {
		t.Errorf("log: %s", c.logged())
	}
	c.say(`{"jsonrpc":"2.0","id":7,"method":"resources/list"}`)
	c.wantLine(`{"jsonrpc":"2.0","id":"8","result":{}}`) // it is passed on, and is not the answer
}

// Where another request has the very string as its id, the answer is that one's.
func TestAnswerOfTheVeryID(t *testing.T) {
	both := make(chan struct{})
	s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
		"tools/call": func(_ http.ResponseWriter, r seen) { close(both); <-r.Context().Done() },
		"ping": func(w http.ResponseWriter, r seen) {
			<-both
			events(w, "data: "+`{"jsonrpc":"2.0","id":"7","result":{"of":"call"}}`+"\n\ndata: "+`{"jsonrpc":"2.0","id":7,"result":{"of":"ping"}}`+"\n\n")
		},
	})
	c := dial(t, Options{URL: s.URL})
	c.greet()
	c.say(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	c.say(`{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"x"}}`)
	c.wantLine(`{"jsonrpc":"2.0","id":"7","result":{"of":"call"}}`)
	c.wantLine(`{"jsonrpc":"2.0","id":7,"result":{"of":"ping"}}`)
}

// What every client reads is an answer, however odd: the client gets it once, and the server is not asked again.
func TestOddAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"an array of one":           `[{"jsonrpc":"2.0","id":2,"result":{}}]`,
		"the id twice":              `{"jsonrpc":"2.0","id":2,"result":{},"id":2}`,
		"the result twice":          `{"jsonrpc":"2.0","id":2,"result":{"of":"first"},"result":{}}`,
		"the method of its request": `{"jsonrpc":"2.0","id":2,"method":"tools/list","result":{}}`,
		"twice in an array":         `[{"jsonrpc":"2.0","id":9,"id":2,"result":{}}]`,
	} {
		for way, say := range map[string]func(w http.ResponseWriter){
			"body":   func(w http.ResponseWriter) { reply(w, answer) },
			"stream": func(w http.ResponseWriter) { events(w, "data: "+answer+"\n\n") },
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				asked := atomic.Int32{}
				s := legacyServer(t, map[string]func(http.ResponseWriter, seen){
					"tools/list": func(w http.ResponseWriter, _ seen) { asked.Add(1); say(w) },
					"ping":       func(w http.ResponseWriter, r seen) { result(w, r, "{}") },
				})
				c := dial(t, Options{URL: s.URL})
				c.greet()
				c.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
				if got := c.hear(); !strings.Contains(got, `"id":2`) || !strings.Contains(got, `"result":{}`) || strings.Contains(got, `"method"`) || got[0] != '{' {
					t.Errorf("line %s", got)
				}
				c.Close()
				if err := c.end(); err != nil {
					t.Errorf("end: %v", err)
				}
				for line := range c.lines {
					t.Errorf("another line: %s", line)
				}
				if n := asked.Load(); n != 1 {
					t.Errorf("asked %d times", n)
				}
			})
		}
	}
}
