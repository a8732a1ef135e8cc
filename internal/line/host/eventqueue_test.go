package host

import (
	"slices"
	"testing"

	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// journal notes what it is told, in order.
type journal struct{ told []event.Type }

func (j *journal) Emit(e event.Event) { j.told = append(j.told, e.Type) }

// Events wait for the end of the callback that they come from, keep their order, and none is lost when everything ends.
func TestNewsIsToldAfterTheCallback(t *testing.T) {
	loop, err := lineloop.NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	var j journal
	h := New(loop, near{}, Options{Stderr: mute{}, Sink: &j, Finish: func(int) {}})
	loop.Post(func() {
		h.events.Emit(event.Event{Type: event.ServerExited})
		h.events.Emit(event.Event{Type: event.ServerReady})
		if len(j.told) > 0 {
			t.Errorf("told %v while the callback ran", j.told)
		}
		loop.Post(func() { // behind the flush
			if want := []event.Type{event.ServerExited, event.ServerReady}; !slices.Equal(j.told, want) {
				t.Errorf("told %v after the callback, want %v", j.told, want)
			}
			h.events.Emit(event.Event{Type: event.RestartCompleted})
			(*world)(h).Finish(0)
			h.events.Emit(event.Event{Type: event.ClientClosed})
			loop.Stop()
		})
	})
	loop.Run()
	if n := len(j.told); n != 3 {
		t.Errorf("%d events told at the end, want the 3 before Finish", n)
	}
	h.Close()
	want := []event.Type{event.ServerExited, event.ServerReady, event.RestartCompleted, event.ClientClosed}
	if !slices.Equal(j.told, want) {
		t.Errorf("told %v, want %v", j.told, want)
	}
}
