package host

import (
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// eventQueue passes the events of a backend on when the callback that they come from is over and what it has to say has been
// written. To put an event into words takes some 20 µs, a crash has half a dozen of them, and the client whose call is
// just going to the next process waits for none. All of it belongs to the loop's goroutine.
type eventQueue struct {
	loop    *lineloop.Loop
	to      event.Sink
	pending []event.Event // in their order
	posted  bool          // tell will be called
}

// Emit implements event.Sink.
func (n *eventQueue) Emit(e event.Event) {
	n.pending = append(n.pending, e)
	if !n.posted {
		n.posted = true
		n.loop.Post(func() {
			n.posted = false
			n.tell()
		})
	}
}

// tell passes on what there is. It is called by itself where no loop may come any more.
func (n *eventQueue) tell() {
	pending := n.pending
	n.pending = nil
	for _, e := range pending {
		n.to.Emit(e)
	}
}
