package backend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/supervise"
)

// relievable is a server in front of which a client waits for tools/list, with a spare that can serve.
func relievable(t *testing.T) *fakeWorld {
	t.Helper()
	w := newWorld(Options{Supervise: supervise.Options{Standby: 1}})
	w.b.Open(w.now)
	w.client(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	w.server(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`)
	w.takeServer()
	w.client(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if w.gen != 1 {
		t.Fatalf("%d processes", w.gen+1)
	}
	for range 5 { // it is greeted, and its lists are read
		for _, line := range w.takeServer() {
			_, id, _ := strings.Cut(line, `"id":`)
			id, _, _ = strings.Cut(id, ",")
			id = strings.TrimSuffix(id, "}")
			switch {
			case strings.Contains(line, `"initialize"`):
				w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}`, id))
			case strings.Contains(line, `"tools/list"`):
				w.server(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, id))
			}
		}
	}
	if spares := w.b.machine.Snapshot().Spares; len(spares) != 1 || !spares[0].Ready {
		t.Fatalf("spares %+v", spares)
	}
	w.takeActs()
	w.client(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
	w.takeServer()
	return w
}

// got reports whether the spare has been given the call that waits.
func got(w *fakeWorld) bool {
	for _, line := range w.takeServer() {
		if strings.Contains(line, "@1 ") && strings.Contains(line, `"id":5,`) {
			return true
		}
	}
	return false
}

// A spare has the waiting call when leader and output are known to have ended, whichever comes first; what is told later
// of the rest changes nothing, and until then the dead process is not forgotten.
func TestASpareTakesOverBeforeAllIsGone(t *testing.T) {
	killed := Exit{Code: 137, Signalled: true, Signal: "killed"}
	for name, news := range map[string][2]func(w *fakeWorld){
		"death first":  {func(w *fakeWorld) { w.b.ServerDied(w.now, 0, killed) }, func(w *fakeWorld) { w.b.ServerClosed(w.now, 0) }},
		"output first": {func(w *fakeWorld) { w.b.ServerClosed(w.now, 0) }, func(w *fakeWorld) { w.b.ServerDied(w.now, 0, killed) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := relievable(t)
			if news[0](w); got(w) || w.b.process.gen != 0 {
				t.Fatal("taken over too early: its output may go on, or its exit may mean something else")
			}
			if news[1](w); !got(w) || w.b.process.gen != 1 {
				t.Fatal("the spare does not have the call")
			}
			if why := w.b.PrepareHandover(w.now); why == "" {
				t.Error("an upgrade would forget the dead process")
			}
			restarts, told := w.b.machine.Restarts(), len(w.events)
			w.b.ServerExited(w.now, 0, killed)
			w.b.ServerExited(w.now, 0, killed)
			if n := w.b.machine.Restarts(); n != restarts || n != 1 || len(w.events) != told {
				t.Errorf("%d restarts, %d before; told %v", n, restarts, w.events[told:])
			}
			if w.b.byGen(0) != nil || w.b.process.gen != 1 {
				t.Error("the dead process is still there")
			}
		})
	}
}

// Whatever needs all of a process to be gone waits for that, as does what is not known to need less.
func TestTheEndIsWaitedFor(t *testing.T) {
	crash := Exit{Code: 1}
	for name, c := range map[string]struct {
		before func(w *fakeWorld)
		exit   Exit
	}{
		"no spare":           {func(w *fakeWorld) { w.b.ServerExited(w.now, 1, crash); w.b.ServerClosed(w.now, 1) }, crash},
		"it is done":         {func(*fakeWorld) {}, Exit{}},
		"output goes on":     {nil, crash},
		"nobody can count":   {func(w *fakeWorld) { w.canCount = false }, crash},
		"everything is over": {func(w *fakeWorld) { w.b.Interrupted(w.now) }, crash},
	} {
		t.Run(name, func(t *testing.T) {
			w := relievable(t)
			if c.before != nil {
				c.before(w)
				w.b.ServerClosed(w.now, 0)
			}
			w.takeActs()
			w.b.ServerDied(w.now, 0, c.exit)
			if acts := w.takeActs(); got(w) || w.b.process.gen != 0 || w.b.process.exited || acts != "" {
				t.Errorf("before all is gone: process %d, did %q", w.b.process.gen, acts)
			}
			w.b.ServerExited(w.now, 0, c.exit)
			if !w.b.process.exited && w.b.process.gen == 0 {
				t.Error("its end was not taken note of")
			}
		})
	}
}

// A call that was sent to a dead process before anybody knew that it is dead was never taken.
func TestWhatIsSentAfterADeathWasNotDelivered(t *testing.T) {
	w := relievable(t)
	w.b.ServerDied(w.now, 0, Exit{Code: 1})
	call := `{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"bump"}}`
	w.client(call)
	w.unread = len(call) + 1
	w.takeServer()
	w.b.ServerClosed(w.now, 0)
	if lines := strings.Join(w.takeServer(), "\n"); !strings.Contains(lines, `"name":"bump"`) {
		t.Errorf("the spare was given %q, the client told %q", lines, w.takeClient())
	}
}

// Everything ends only when nothing is left of the process that a spare has relieved.
func TestNothingIsOverBeforeTheRelievedIsGone(t *testing.T) {
	w := relievable(t)
	w.b.ServerClosed(w.now, 0)
	w.b.ServerDied(w.now, 0, Exit{Code: 1})
	w.b.Interrupted(w.now)
	w.b.ServerExited(w.now, 1, Exit{Code: 143})
	w.b.ServerClosed(w.now, 1)
	if acts := w.takeActs(); strings.Contains(acts, "finish") {
		t.Fatalf("finished with something left: %s", acts)
	}
	w.b.ServerExited(w.now, 0, Exit{Code: 1})
	if acts := w.takeActs(); acts != "finish 0" {
		t.Errorf("did %q", acts)
	}
}
