package backend

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// attr is the text of an attribute of the last event of a type; "" if there is none.
func (w *fakeWorld) attr(typ event.Type, key string) (text string) {
	for _, e := range w.events {
		for _, a := range e.Attrs {
			if e.Type == typ && a.Key == key && a.Value.Kind() == slog.KindString {
				text = a.Value.String()
			}
		}
	}
	return text
}

// A restart has a cause, also when somebody asks for one while a crashed server is waited for.
func TestARestartHasACause(t *testing.T) {
	for name, c := range map[string]struct {
		asked bool
		want  string
	}{"crash": {false, "crash"}, "crash overtaken by a request": {true, "requested"}} {
		t.Run(name, func(t *testing.T) {
			w := readyWorld(Options{})
			for range 2 {
				w.exit(1)
				if c.asked {
					w.b.Restart(w.now, supervise.SourceTool, "asked")
				}
				w.tick(2 * time.Second)
				answerReplay(w)
			}
			if got := w.attr(event.RestartCompleted, event.KeyCause); got != c.want {
				t.Errorf("restart_completed has the cause %q, want %q", got, c.want)
			}
		})
	}
}

// A server is ready when it has answered a handshake, and not because it runs.
func TestReadyMeansAnswered(t *testing.T) {
	w := newWorld(Options{Supervise: supervise.Options{StartTimeout: 2 * time.Second}})
	w.b.Open(w.now)
	state := func(when, want string) {
		t.Helper()
		if s := w.b.Status(w.now); s.State != want {
			t.Errorf("%s: the state is %s, want %s", when, s.State, want)
		}
	}
	state("nothing was asked", "starting")
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	for range 3 {
		w.tick(2 * time.Second)
		state("no answer in time", "stopping")
		w.exit(137)
		w.tick(time.Second)
	}
	if got := strings.Join(w.takeClient(), ""); !strings.Contains(got, `"id":0,"error"`) {
		t.Fatalf("the client was told %q", got)
	}
	state("the first start has failed", "starting")
	w.takeServer()
	w.tick(2 * time.Second)
	state("still no answer", "stopping")
	w.exit(137)
	for w.b.machine.State() != supervise.Starting {
		w.tick(100 * time.Millisecond)
	}
	answerReplay(w)
	state("it has answered", "ready")
	if n := w.b.Status(w.now).RestartCount; n < 3 {
		t.Errorf("%d restarts", n)
	}
}
