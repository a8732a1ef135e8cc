package gateway

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const askable = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/logLevel":"debug",` +
	`"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`

// bridged is a world with a server of each era, which are translated for clients of the other.
func bridged(t *testing.T, single bool) *world {
	w := newWorld(t, Options{Single: single})
	w.plan("new", plan{modern: true, only: true, bridge: true, tools: []string{"hang"}})
	w.plan("old", plan{bridge: true, tools: []string{"hang"}})
	a, b := named("new"), named("old")
	a.Bridge, b.Bridge = true, true
	w.serve(a, b)
	return w
}

func TestEveryEraSeesEveryServer(t *testing.T) {
	w := bridged(t, false)
	want := []string{"new_hang", "old_hang"}
	if diff := cmp.Diff(want, w.legacy().tools()); diff != "" {
		t.Error("legacy:", diff)
	}
	if diff := cmp.Diff(want, toolsOf(t, w.client().modern("1", "tools/list", ""))); diff != "" {
		t.Error("modern:", diff)
	}
}

// A call that comes before it is known which era the server speaks goes to the process that is started for its use.
func TestACallBeforeTheEraIsKnown(t *testing.T) {
	w := bridged(t, false)
	w.serve(w.gw.servers[1].Server)
	w.plans["old"].tools = []string{"do"}
	has(t, "call", w.client().callModern("1", "old_do", ""), `"text":"old"`)
	if n := len(w.of("old")); n != 1 {
		t.Errorf("%d processes", n)
	}
}

// Whoever looks at a request of a server that many share knows whom the transport has authenticated: nobody's own word for it.
func TestWhoAsksASharedServer(t *testing.T) {
	for _, tool := range []string{"old_hang", "new_hang"} {
		t.Run(tool, func(t *testing.T) {
			w := bridged(t, false)
			c := w.client()
			c.principal = "alice"
			c.modern("1", "tools/list", "")
			c.ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `",` + askable + `}}`)
			p := w.of(strings.TrimSuffix(tool, "_hang"))[0]
			m, _ := p.last("tools/call")
			if who := whose(p.link, m.ID); who.Principal != "alice" || string(who.ID) != "2" {
				t.Errorf("the call is of %+v", who)
			}
			if strings.Contains(m.Raw, "alice") {
				t.Errorf("the server was told %s", m.Raw)
			}
		})
	}
}
