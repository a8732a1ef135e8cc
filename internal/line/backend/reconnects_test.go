package backend

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// A remote server that is away for an hour has not crashed and is not restarted: connections to it are lost. Its absence takes a line a
// minute, and no more is said when it is back.
func TestAServerThatIsAwayForAnHour(t *testing.T) {
	policy := backoff.Transparent()
	policy.MaxRestarts = 0 // as behind a gateway
	w := readyWorld(Options{Remote: true, NoTools: true, Reload: ReplaceReload, Supervise: supervise.Options{Backoff: policy}})
	begin := len(w.events)
	lose := func() {
		w.b.ServerExited(w.now, w.gen, Exit{Code: 1, Why: "far: cannot be reached: connection refused", Connection: true})
		w.b.ServerClosed(w.now, w.gen)
	}
	lose()
	tries := 0
	for end := w.now.Add(time.Hour); w.now.Before(end); w.tick(time.Second) {
		if w.b.machine.State() == supervise.Starting {
			tries++
			lose()
		}
	}
	for w.b.machine.State() != supervise.Starting {
		w.tick(time.Second)
	}
	answerReplay(w)

	told, kinds := 0, map[event.Type]int{}
	for _, e := range w.events[begin:] {
		kinds[e.Type]++
		if e.Level >= slog.LevelInfo {
			told++
		}
	}
	t.Logf("%d tries, %d lines: %v", tries, told, kinds)
	if tries < 80 || told > 100 {
		t.Errorf("%d lines about %d tries", told, tries)
	}
	if kinds[event.ConnectionLost] != tries+1 {
		t.Errorf("%d lost connections are counted, want %d", kinds[event.ConnectionLost], tries+1)
	}
	for _, never := range []event.Type{event.ServerCrashed, event.RestartInitiated, event.RestartDelayed, event.RestartCompleted} {
		if kinds[never] > 0 {
			t.Errorf("%d × %s", kinds[never], never)
		}
	}
	last := w.events[len(w.events)-1]
	for n := len(w.events) - 1; last.Type != event.ServerReady && n >= begin; n-- {
		last = w.events[n]
	}
	if !strings.HasPrefix(last.Message, "Connected again after 1h0m") {
		t.Errorf("told at the end: %s", last.Message)
	}
	s := w.b.Status(w.now)
	if s.RestartCount != 0 || s.Counters.Gaps != nil {
		t.Errorf("%d restarts, gaps %v", s.RestartCount, s.Counters.Gaps)
	}

	w.b.Restart(w.now, supervise.SourceControl, "asked")
	w.tick(2 * time.Second)
	lose()
	w.tick(2 * time.Second)
	answerReplay(w)
	if s := w.b.Status(w.now); s.RestartCount != 1 || s.Counters.Gaps == nil {
		t.Errorf("after a restart that was asked for: %d restarts", s.RestartCount)
	}
}

// A client whose server elsewhere cannot be reached is told which, why and how often it was tried, in one sentence without brackets.
func TestAServerThatIsAwayFromTheBeginning(t *testing.T) {
	w := newWorld(Options{Remote: true, NoTools: true})
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	for tries := 0; tries < firstTries; w.tick(time.Second) {
		if w.b.machine.State() == supervise.Starting {
			tries++
			w.b.ServerExited(w.now, w.gen, Exit{Code: 1, Why: "far: cannot be reached: connection refused", Connection: true})
			w.b.ServerClosed(w.now, w.gen)
		}
	}
	if told := strings.Join(w.takeClient(), "\n"); !strings.Contains(told, `"message":"far: cannot be reached: connection refused; 3 connections tried"`) {
		t.Errorf("the client is told %s", told)
	}
}
