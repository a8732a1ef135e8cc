package host

import (
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// news passes the events of a backend on when the callback that they come from is over and what it has to say has been
// written. To put an event into words takes some 20 µs, a crash has half a dozen of them, and the client whose call is
// just going to the next process waits for none. All of it belongs to the loop's goroutine.
type news struct {
	loop    *lineloop.Loop
	to      event.Sink
	untold  []event.Event // in their order
	promise bool          // tell will be called
}

// Emit implements event.Sink.
func (n *news) Emit(e event.Event) {
	n.untold = append(n.untold, e)
	if !n.promise {
		n.promise = true
		n.loop.Post(n.keepPromise)
	}
}

func (n *news) keepPromise() {
	n.promise = false
	n.tell()
}

// tell passes on what there is. It is called by itself where no loop may come any more.
func (n *news) tell() {
	untold := n.untold
	n.untold = nil
	for _, e := range untold {
		n.to.Emit(e)
	}
}
