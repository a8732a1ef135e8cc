package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestOlderGatewaySessions: sessions of a gateway of the release before go on with this one at its address, after it was killed in the middle of a
// call, stopped, or upgraded in place: with their subscription, also where records are kept in memory only. Clients of the modern era go on, too. No
// call runs twice.
func TestOlderGatewaySessions(t *testing.T) {
	before := older(t)
	t.Parallel()
	for _, how := range []string{"SIGKILL", "SIGTERM", "an upgrade"} {
		for _, name := range []string{"ts1", "py-legacy", "ts2-modern"} {
			if how == "SIGKILL" && name == "py-legacy" {
				continue // it sends nothing any more once the connection of a call is cut; TestSessionsOutliveTheGateway kills without one
			}
			t.Run(how+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := newWorkspace(t)
				var top []string
				if how == "an upgrade" {
					top = []string{"sessions: memory"}
				}
				used := backend{name: "used", server: servers()["py"], keys: []string{fmt.Sprint("shared: ", name == "ts1")}}
				config := w.gatewayConfig(t, top, used)
				argv := func(program string) []string {
					return append([]string{program}, w.stdioGateway(config)[1:]...)
				}
				address := freeAddress(t)
				g := w.listenBy(t, append(argv(w.install(t, before)), "--listen", address))
				s := w.join(t, gatewayClients()[name], g.url)
				s.server = used.server
				if !eventually(func() bool { return slices.Contains(s.toolNames(t), "used_bump") }) {
					t.Fatal("the tools of the server are not shown")
				}
				s.do(t, step{"op": "subscribe", "uri": item})
				s.hearsUpdates(t, "used_touch", "before")
				w.install(t, tools.outlive)

				_, cut := s.begin(step{"op": "call", "tool": "used_bump", "args": map[string]any{"value": "cut", "ms": 2000}})
				w.awaitTrace(t, "bump cut", 1)
				switch how {
				case "SIGKILL":
					g.killed(t)
				case "SIGTERM":
					g.stop2(t)
				default:
					if text, code := w.becomes("gateway"); code != 0 {
						t.Fatalf("exit status %d: %s", code, text)
					}
				}
				if how != "an upgrade" {
					g = w.listenBy(t, append(argv(w.path("outlive")), "--listen", address))
				} else if n := w.upgrades(t, "gateway"); n != 1 {
					t.Errorf("upgraded %d times", n)
				}
				if !eventually(func() bool { // the client may still wait for an answer on its old connection
					_, ch := s.begin(step{"op": "call", "tool": "used_echo", "args": map[string]any{"text": how}})
					r := s.await(t, how, ch)
					return r.Error == nil && r.text() == how
				}) {
					t.Fatalf("after %s the client does not go on", how)
				}
				if !s.modern() { // those open another stream, where they want one
					s.hearsUpdates(t, "used_touch", "after "+how)
				}
				if r := s.await(t, "the call that ran meanwhile", cut); how == "an upgrade" && r.text() == "" {
					t.Errorf("a call that ran at an upgrade: %s", r)
				}
				if n := w.count("bump cut"); n != 1 {
					t.Errorf("the call that ran meanwhile ran %d times", n)
				}
				if !slices.Contains(s.toolNames(t), "used_bump") {
					t.Error("the list of tools lacks some")
				}
				s.do(t, step{"op": "close"})
				select {
				case <-s.driver.exited():
				case <-time.After(patience):
					t.Error("the client does not end")
				}
				g.stop(t)
			})
		}
	}
}
