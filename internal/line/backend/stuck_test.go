package backend

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// A server that cannot be killed does not keep the next one from being started. What it was asked it may do yet, so the next one is not
// asked, although the first had read nothing of it.
func TestAServerThatCannotBeKilled(t *testing.T) {
	w := readyWorld(Options{Reload: ReplaceReload})
	w.client(`{"jsonrpc":"2.0","id":"pay","method":"tools/call","params":{"name":"pay","arguments":{}}}`)
	w.unread = 1 << 20
	w.takeServer()
	w.b.Restart(w.now, supervise.SourceControl, "asked")
	w.tick(10 * time.Second)
	if acts := w.takeActs(); !strings.HasSuffix(acts, "kill") {
		t.Fatalf("within 10 s: %s", acts)
	}
	w.tick(15 * time.Second)
	if acts := w.takeActs(); acts != "abandon, start 1" {
		t.Fatalf("15 s later: %q, want the next server", acts)
	}
	if got := strings.Join(w.takeClient(), "\n"); strings.Count(got, `"id":"pay"`) != 1 || !strings.Contains(got, `"delivered":"unknown"`) {
		t.Errorf("the call was answered %q", got)
	}
	answerReplay(w)
	if got := strings.Join(w.takeServer(), "\n"); strings.Contains(got, `"pay"`) {
		t.Errorf("the next server was asked, too: %s", got)
	}
	s := w.b.Status(w.now)
	if s.State != "ready" || len(s.Beside) != 1 || s.Beside[0].Role != "stuck" || s.Beside[0].PID != 1000 {
		t.Errorf("%s, beside it %+v; want the one that is stuck", s.State, s.Beside)
	}
	if s.LastExit == nil || !strings.Contains(s.LastExit.Why, "does not end even when it is killed") {
		t.Errorf("last exit: %+v", s.LastExit)
	}
	if !slices.ContainsFunc(w.events, func(e event.Event) bool { return e.Type == event.ServerStuck && e.ServerPID == 1000 }) {
		t.Error("nobody was told")
	}
	w.b.ServerExited(w.now, 0, Exit{Code: 137, Signalled: true, Signal: "killed"})
	if s := w.b.Status(w.now); s.State != "ready" || len(s.Beside) != 0 {
		t.Errorf("once it has ended: %s, beside it %+v", s.State, s.Beside)
	}
}

// Nor does it keep outlive from ending.
func TestTheEndBesideAServerThatCannotBeKilled(t *testing.T) {
	w := readyWorld(Options{})
	w.b.Interrupted(w.now)
	w.tick(20 * time.Second)
	if acts := w.takeActs(); !strings.HasSuffix(acts, "kill, abandon, finish 0") {
		t.Errorf("%q, want the end", acts)
	}
}
