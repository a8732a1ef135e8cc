package gateway

import (
	"strings"
	"testing"
	"time"
)

// Whatever one client and its servers send: nothing breaks, and a client that has nothing to do with it hears nothing.
func FuzzForeignBytes(f *testing.F) {
	seeds := [][2]string{
		{`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a_hang"}}`, `{"jsonrpc":"2.0","id":20,"result":{}}`},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"_meta":{"progressToken":null}}}`},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":null}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`},
		{`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["x:1",5,{}]},` + modernMeta + `}}`,
			`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":5,"_meta":{"io.modelcontextprotocol/subscriptionId":9}}}`},
		{`[{"jsonrpc":"2.0","id":9,"method":"ping"},5]`, `{"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":5},{"name":""}],"nextCursor":"x"}}`},
		{`{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{"cursor":"x"}}`, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`},
		{`{"jsonrpc":"2.0","id":6,"method":"completion/complete","params":{"ref":{"name":5}}}`, `{"jsonrpc":"2.0","id":4,"error":{"code":"x"}}`},
		{`{"jsonrpc":"2.0","id":6,"method":"logging/setLevel","params":{"level":"debug"}}`, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`},
	}
	for _, s := range seeds {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, said, heard string) {
		w := newWorld(t, Options{})
		w.plan("a", plan{tools: []string{"do", "hang"}, uris: []string{"x:1"}})
		w.plan("b", plan{modern: true, tools: []string{"hang"}, uris: []string{"y:1"}})
		w.serve(named("a"), named("b"))
		w.plans["a"].slow = true // the second list of a is up to the fuzzer
		by := w.legacy()
		call := by.call("1", "b_hang")
		before := len(w.procs)
		speakers := []*client{w.legacy(), w.client()}
		speakers[1].modern("1", "tools/list", "")
		for _, c := range speakers {
			c.call("1", "a_hang")
			c.callModern("2", "b_hang", "")
		}
		theirs := w.procs[before:]
		clients, servers := strings.Split(said, "\n"), strings.Split(heard, "\n")
		for i := range max(len(clients), len(servers)) {
			for _, c := range speakers {
				if i < len(clients) {
					c.ask(clients[i])
				}
			}
			for _, p := range theirs {
				if i < len(servers) && !p.ended {
					p.link.Send([]byte(servers[i]))
				}
			}
			w.settle()
		}
		w.pass(time.Minute)
		for _, c := range speakers {
			c.Close(w.now)
		}
		w.settle()
		want(t, "a bystander's call", call)
		want(t, "a bystander", by.general)
		w.gw.Close(w.now)
		w.settle()
		for _, p := range w.procs {
			if !p.ended {
				t.Errorf("a process of %s still runs", p.name)
			}
		}
	})
}
