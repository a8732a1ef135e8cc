package e2e

import (
	"slices"
	"strings"
	"testing"
)

// TestEverything: the reference server, which knows nothing of these tests, behind outlive with every client.
func TestEverything(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"go", "ts1", "ts2-legacy", "py-auto", "py-legacy"} {
		c := clients()[name]
		t.Run(name, func(t *testing.T) {
			onePerKind(t, name != "ts1" && name != "py-legacy") // which TestGatewayEverything has
			t.Parallel()
			s, hello := connect(t, c, servers()["everything"])
			if hello.Error != nil {
				t.Fatalf("connect: %s", hello)
			}
			s.checkEra(t, c)
			from := s.everythingFirst(t)
			if !direct() {
				s.everythingUnderFire(t)
				changes := 0
				for _, e := range s.seen(from) {
					if e.Method == "notifications/tools/list_changed" {
						changes++
					}
				}
				if changes > 0 {
					t.Errorf("told %d times of a change of tools over restarts that changed none", changes)
				}
			}
			s.everythingLeave(t)
		})
	}
}

const document = "demo://resource/static/document/architecture.md"

// everythingFirst uses what the server has, and returns the position in the events after which no list changes.
func (s *session) everythingFirst(t *testing.T) int {
	t.Helper()
	// The server adds the tools that depend on the client's capabilities after the handshake.
	var names []string
	if !eventually(func() bool { names = s.toolNames(t); return slices.Contains(names, "trigger-sampling-request") }) {
		t.Fatalf("tools: %v", names)
	}
	if got := s.call(t, "echo", map[string]any{"message": "hello"}).text(); got != "Echo: hello" {
		t.Errorf("echo: %q", got)
	}
	r := s.do(t, step{"op": "call", "tool": "trigger-long-running-operation", "args": map[string]any{"duration": 0.6, "steps": 3}, "progress": true})
	// Clients may handle the last progress after the answer that follows it at once.
	if !strings.Contains(r.text(), "completed") || len(r.Progress) < 2 || !slices.IsSorted(r.Progress) {
		t.Errorf("progress %v of %s", r.Progress, r)
	}
	if got := s.call(t, "trigger-sampling-request", map[string]any{"prompt": "q", "maxTokens": 10}).text(); !strings.Contains(got, "fixed reply") {
		t.Errorf("sampling: %q", got)
	}
	s.call(t, "trigger-elicitation-request", map[string]any{})
	s.awaitEvent(t, 0, "elicitation", asked("elicitation/create"))
	if got := s.call(t, "get-roots-list", map[string]any{}).text(); !strings.Contains(got, "file:///e2e/root") {
		t.Errorf("roots: %q", got)
	}
	s.do(t, step{"op": "subscribe", "uri": document})
	from := s.mark()
	s.call(t, "toggle-subscriber-updates", map[string]any{})
	s.awaitEvent(t, from, "resource update", notification("notifications/resources/updated", document))
	s.toolNames(t)
	return s.mark()
}

// everythingPID is the one living process of the server.
func (s *session) everythingPID(t *testing.T) int {
	t.Helper()
	var pids []int
	if !eventually(func() bool { pids = s.serverPIDs(s.server); return len(pids) == 1 }) {
		t.Fatalf("processes of the server: %v, want one", pids)
	}
	return pids[0]
}

func (s *session) everythingUnderFire(t *testing.T) {
	t.Helper()
	from := s.mark()
	kill(t, s.everythingPID(t))
	if got := s.call(t, "get-sum", map[string]any{"a": 20, "b": 22}).text(); !strings.Contains(got, "42") {
		t.Errorf("sum: %q", got)
	}
	s.awaitEvent(t, from, "update after the restart", notification("notifications/resources/updated", document))

	from = s.mark()
	n, ch := s.begin(step{"op": "call", "tool": "trigger-long-running-operation", "args": map[string]any{"duration": 1.2, "steps": 6}, "progress": true})
	s.awaitEvent(t, from, "progress", func(e event) bool { return e.Event == "progress" && e.N == n && e.Progress >= 2 })
	kill(t, s.everythingPID(t))
	r := s.await(t, "long operation", ch)
	if r.Error != nil || r.tool().IsError {
		t.Errorf("a read-only call over a kill: %s", r)
	}
	for i := 1; i < len(r.Progress); i++ {
		if r.Progress[i] <= r.Progress[i-1] {
			t.Errorf("progress went back: %v", r.Progress)
		}
	}

	from = s.mark()
	s.do(t, step{"op": "hold"})
	_, ch = s.begin(step{"op": "call", "tool": "trigger-elicitation-request", "args": map[string]any{}})
	s.awaitEvent(t, from, "elicitation", asked("elicitation/create"))
	kill(t, s.everythingPID(t))
	s.wantUnknown(t, s.await(t, "elicitation", ch))
	s.awaitEvent(t, from, "withdrawal of the question", func(e event) bool { return e.Event == "withdrawn" })
	s.do(t, step{"op": "release"})
	if got := s.call(t, "trigger-sampling-request", map[string]any{"prompt": "again", "maxTokens": 10}).text(); !strings.Contains(got, "fixed reply") {
		t.Errorf("sampling after restarts: %q", got)
	}
	from = s.mark()
	s.call(t, "toggle-subscriber-updates", map[string]any{})
	s.awaitEvent(t, from, "resource update", notification("notifications/resources/updated", document))
}

func (s *session) everythingLeave(t *testing.T) {
	t.Helper()
	s.do(t, step{"op": "unsubscribe", "uri": document})
	if direct() {
		s.call(t, "toggle-subscriber-updates", map[string]any{}) // its timer keeps the server alive beyond the end of stdin
	}
	s.do(t, step{"op": "close"})
	<-s.driver.exited()
	s.noneLeft(t)
	for _, e := range s.seen(0) {
		if strings.Contains(e.Message, "progress notification for an unknown token") {
			continue // the last progress comes just before the answer, and this client handles the answer first
		}
		if strings.HasSuffix(e.Message, "Not connected") {
			continue // the server asked for the roots while the client was closing
		}
		if e.Event == "error" || e.Event == "closed" {
			t.Errorf("the client noticed: %s", e)
		}
	}
}
