package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a client asks after it has set the log level reaches the server behind the level, also a process that is started since. That it
// waits until the server has confirmed the level is its keeper's: see testdata/dialogue/order.txtar.
func TestTheLevelComesBeforeTheCalls(t *testing.T) {
	w := newWorld(t, Options{})
	w.serve(named("a"))
	c := w.legacy().wake()
	c.level("debug")
	for _, id := range []string{"1", "2"} {
		has(t, "the call", c.call(id, "a_do"), `"result"`)
		p := w.of("a")[0]
		var order []string
		for _, m := range p.told {
			if m.Method == "logging/setLevel" || m.Method == "tools/call" {
				order = append(order, m.Method)
			}
		}
		if diff := cmp.Diff([]string{"logging/setLevel", "tools/call"}, order); diff != "" {
			t.Errorf("call %s: %s", id, diff)
		}
		p.end()
		w.settle()
	}
}
