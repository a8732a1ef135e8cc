package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
)

// A tool can be called by what its server calls it, whatever that is shown as: with a dot, a slash, a long name, or none.
func TestCallsByOwnNames(t *testing.T) {
	long := strings.Repeat("n", 128)
	for _, names := range []catalog.Names{catalog.Always, catalog.Never} {
		w := newWorld(t, Options{Names: names})
		w.plan("a", plan{tools: []string{"files.read", "a/b", long, "", "twice"}})
		w.plan("b", plan{tools: []string{"twice"}})
		w.serve(named("a"), named("b"))
		c := w.legacy()
		for i, shown := range append(c.tools()[:4], "files.read", "a/b", long, "") {
			c.call(`"x"`, shown)
			p := w.of("a")[0]
			want := []string{"files.read", "a/b", long, ""}[i%4]
			if m, ok := p.last("tools/call"); !ok || len(p.open) != 1 || m.Params.Name != want {
				t.Fatalf("%s: %q called the server's %q", names, shown, m.Params.Name)
			}
			p.answer(p.open[0], `"fine"`)
			p.open = nil
		}
		has(t, "no name", c.ask(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`), "Unknown tool: ")
		if names == catalog.Always {
			has(t, "of two servers", c.call("2", "twice"), "Unknown tool: twice (several servers have one: a_twice, b_twice)")
		}
	}
}

// A name that was shown for one server's tool never calls another server's, also while the first does not show it.
func TestAnOwnNameThatWasShownForAnotherServer(t *testing.T) {
	w := newWorld(t, Options{Names: catalog.OnCollision})
	w.serve(named("a"), named("b"))
	c := w.legacy()
	has(t, "a's", c.call("1", "do"), `"text":"a"`)
	w.plan("a", plan{tools: []string{"other"}})
	w.serve(Server{Catalog: catalog.Server{Name: "a"}, Digest: "2"}, named("b"))
	w.pass(time.Second)
	has(t, "nobody's", c.call("2", "do"), "Unknown tool: do")
	has(t, "b's", c.call("3", "b_do"), `"text":"b"`)
}

// Whose an own name is stays open until all servers have shown theirs.
func TestAnOwnNameThatTwoServersMayHave(t *testing.T) {
	for _, tools := range [][]string{{"do"}, {"other"}} {
		w := newWorld(t, Options{ListWait: 5 * time.Second})
		w.plan("a", plan{tools: tools, slow: true})
		w.serve(named("a"), named("b"))
		c := w.legacy()
		call := c.call("1", "do")
		want(t, "not yet", call)
		p := w.of("a")[0]
		p.listTools(p.open[0])
		w.settle()
		answer := "Unknown tool: do (several servers have one: a_do, b_do)"
		if tools[0] != "do" {
			answer = `"text":"b"`
		}
		w.pass(lookFor) // whether a server has it now is asked before it is refused
		has(t, tools[0], call, answer)
	}
}
