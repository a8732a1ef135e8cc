package backend

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// callsOf are the counters of a tool.
func callsOf(t *testing.T, c Counters, tool string) Calls {
	t.Helper()
	for _, one := range c.Calls {
		if one.Method == "tools/call" && one.Tool == tool {
			return one
		}
	}
	t.Fatalf("nothing was counted for %q: %+v", tool, c.Calls)
	return Calls{}
}

func TestCallsAreCountedByToolAndOutcome(t *testing.T) {
	b, w := readyBackend()
	call := func(id int, tool string) {
		w.client(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q}}`, id, tool))
	}
	call(1, "echo")
	w.now = w.now.Add(40 * time.Millisecond)
	w.server(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`)
	call(2, "echo")
	w.server(`{"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true}}`)
	call(3, "echo")
	w.server(`{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no"}}`)
	call(4, "sum")
	w.client(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)

	got := b.Status(w.now).Counters
	echo := callsOf(t, got, "echo")
	if took := echo.Latency.Quantile(1); took != 40*time.Millisecond || echo.Latency.Count() != 3 {
		t.Errorf("%d calls of echo, the longest %s", echo.Latency.Count(), took)
	}
	if echo.OK != 1 || echo.ToolError != 1 || echo.Errors != 1 || echo.Bad() != 2 || echo.Total() != 3 {
		t.Errorf("echo: %+v", echo)
	}
	if sum := callsOf(t, got, "sum"); sum.Cancelled != 1 || sum.Total() != 1 {
		t.Errorf("sum: %+v", sum)
	}
	if got.Events["server_ready"] != 1 {
		t.Errorf("events: %v", got.Events)
	}
}

// The names of tools come from the client, which may invent any number of them.
func TestToolsAreCountedWithinBounds(t *testing.T) {
	b, w := readyBackend()
	for i := range 2 * toolsCounted {
		w.client(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t%d"}}`, i, i))
		w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, i))
	}
	if n := len(b.tally.tools); n != toolsCounted+1 {
		t.Errorf("%d tools are counted", n)
	}
	if rest := callsOf(t, b.Status(w.now).Counters, ""); rest.OK != toolsCounted {
		t.Errorf("the others: %+v", rest)
	}
}

// Its handshake, and a look at what it has, make no use of a server.
func TestWhatMakesUseOfAServer(t *testing.T) {
	b, w := readyBackend()
	w.client(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.server(`{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`)
	if s := b.Status(w.now); b.Used() || s.Counters.Used() || len(s.Counters.Calls) == 0 {
		t.Errorf("after a list it is used: %+v", s.Counters.Calls)
	}
	w.client(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo"}}`)
	if b.Used() {
		t.Error("a call that is not over counts")
	}
	w.server(`{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`)
	if s := b.Status(w.now); !b.Used() || !s.Counters.Used() {
		t.Errorf("after a call it is not used: %+v", s.Counters.Calls)
	}
	for method, want := range map[string]bool{"initialize": false, "server/discover": false, "ping": false, "resources/read": true, "": true} {
		if c := (Counters{Calls: []Calls{{Method: method, OK: 1}}}); c.Used() != want {
			t.Errorf("%q: %v", method, !want)
		}
	}
}

func TestCountersAreMerged(t *testing.T) {
	a := Counters{Calls: []Calls{{Method: "tools/call", Tool: "b", OK: 1}}, Events: map[string]int64{"x": 1}}
	kept := Counters{Calls: []Calls{{Method: "tools/call", Tool: "b", OK: 1}}, Events: map[string]int64{"x": 1}}
	sum := a
	sum.Merge(Counters{Calls: []Calls{{Method: "tools/call", Tool: "a", Refused: 2}, {Method: "tools/call", Tool: "b", OK: 3, Unknown: 1}},
		Events: map[string]int64{"x": 2}, Restarts: map[string]int64{"crash": 1}})
	want := []Calls{{Method: "tools/call", Tool: "a", Refused: 2}, {Method: "tools/call", Tool: "b", OK: 4, Unknown: 1}}
	same := cmp.Comparer(func(a, b Calls) bool { return a == b })
	if d := cmp.Diff(want, sum.Calls, same); d != "" || sum.Events["x"] != 3 || sum.Restarts["crash"] != 1 {
		t.Errorf("sum (-want +got):\n%s%v", d, sum)
	}
	if d := cmp.Diff(kept, a, same); d != "" {
		t.Errorf("the first one was changed (-want +got):\n%s", d)
	}
}
