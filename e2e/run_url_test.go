package e2e

import (
	"strings"
	"testing"
)

// TestRunURL: the reference server, reached by Streamable HTTP and by the older HTTP+SSE, for clients that speak stdio only. It is killed
// and started again under them: what was asked while it was away is answered when it is back, a call that only reads is repeated, what may
// have had an effect is answered as unknown, and the client keeps its subscription.
func TestRunURL(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for transport, path := range map[string]string{"streamableHttp": "/mcp", "sse": "/sse"} {
		for _, name := range []string{"ts1", "ts2-legacy", "py-legacy", "py-auto", "go"} {
			t.Run(transport+"/"+name, func(t *testing.T) {
				onePerKind(t, (transport == "sse") == (name == "ts1" || name == "py-legacy"))
				t.Parallel()
				w := newWorkspace(t)
				address := freeAddress(t)
				there := w.everythingServer(t, address, transport)
				again := func() {
					_ = there.Process.Kill()
					_ = there.Wait() // killed
					there = w.everythingServer(t, address, transport)
				}
				s := w.join(t, clients()[name], tools.outlive, "run", "http://"+address+path, "--audit", w.path("audit.log"))
				from := s.everythingFirst(t)
				s.overRestarts(t, again)
				for _, e := range s.seen(from) {
					if e.Method == "notifications/tools/list_changed" {
						t.Errorf("told of a change of tools over restarts that changed none")
					}
				}
				s.do(t, step{"op": "unsubscribe", "uri": document})
				s.depart(t)
			})
		}
	}
}

// overRestarts uses a server elsewhere while again kills it and starts it anew.
func (s *session) overRestarts(t *testing.T, again func()) {
	t.Helper()
	from := s.mark()
	_, ch := s.begin(step{"op": "call", "tool": "trigger-long-running-operation", "args": map[string]any{"duration": 1.2, "steps": 6}, "progress": true})
	s.awaitEvent(t, from, "progress", func(e event) bool { return e.Event == "progress" && e.Progress >= 2 })
	again()
	if r := s.await(t, "long operation", ch); r.Error != nil || r.tool().IsError {
		t.Errorf("a read-only call over a kill: %s", r)
	}
	s.awaitEvent(t, from, "update after the restart", notification("notifications/resources/updated", document))

	from = s.mark()
	s.do(t, step{"op": "hold"})
	_, ch = s.begin(step{"op": "call", "tool": "trigger-elicitation-request", "args": map[string]any{}})
	s.awaitEvent(t, from, "elicitation", asked("elicitation/create"))
	again()
	s.wantUnknown(t, s.await(t, "elicitation", ch))
	s.do(t, step{"op": "release"})
	if got := s.call(t, "get-sum", map[string]any{"a": 20, "b": 22}).text(); !strings.Contains(got, "42") {
		t.Errorf("sum: %q", got)
	}
	if got := s.call(t, "trigger-sampling-request", map[string]any{"prompt": "again", "maxTokens": 10}).text(); !strings.Contains(got, "fixed reply") {
		t.Errorf("sampling after restarts: %q", got)
	}
}
