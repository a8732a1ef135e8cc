package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// ErrEnded is returned to those who ask something of a host that is no more.
var ErrEnded = errors.New("outlive has shut down")

// Waiters are those who wait for the restart they asked for. They belong to the loop's goroutine.
type Waiters []waiter

type waiter struct {
	newest int // the newest process when he asked: those after it were started for him
	tell   func(error)
}

// Add adds one who asks while newest is the newest process.
func (w *Waiters) Add(newest int, tell func(error)) { *w = append(*w, waiter{newest, tell}) }

// TellOf tells those who asked before the process of that generation was started how it went.
func (w *Waiters) TellOf(generation int, err error) {
	*w = slices.DeleteFunc(*w, func(one waiter) bool {
		if one.newest < generation {
			one.tell(err)
		}
		return one.newest < generation
	})
}

// Restart replaces the server and returns when the new one is ready, or says why it is not. One that sleeps, or waits until it
// is needed, has nothing to be replaced; when it is needed its launcher is asked for it, if it has one. Any goroutine.
func (h *Host) Restart(ctx context.Context, source supervise.Source, reason string) error {
	failed, err := lineloop.AskLater(ctx, h.loop, h.ended, ErrEnded, func(tell func(error)) {
		if h.Backend.Asleep() {
			h.shortcut.command = nil
			tell(nil)
			return
		}
		h.waiters.Add(h.Backend.Newest(), tell)
		h.Backend.Restart(time.Now(), source, reason)
	})
	return cmp.Or(err, failed)
}

// Status tells how the server stands. Any goroutine.
func (h *Host) Status(ctx context.Context) (backend.Status, error) {
	return lineloop.Ask(ctx, h.loop, h.ended, ErrEnded, func() backend.Status { return h.Backend.Status(time.Now()) })
}

// Used is Status of a server that a client has made use of. Of another it is zero, and what its processes use is not looked at. Any
// goroutine.
func (h *Host) Used(ctx context.Context) (backend.Status, error) {
	return lineloop.Ask(ctx, h.loop, h.ended, ErrEnded, func() (s backend.Status) {
		if h.Backend.Used() {
			s = h.Backend.Status(time.Now())
		}
		return s
	})
}

// restartWatch hears the events and tells those who wait for a restart how it went.
type restartWatch Host

// Emit implements event.Sink.
func (w *restartWatch) Emit(e event.Event) {
	h := (*Host)(w)
	if e.Type == event.ServerReady || e.Type == event.SpareReady {
		h.findShortcut(e.Generation)
	}
	if e.Type == event.StartTimeout { // outlive itself ends it
		h.neverReady(h.byGen(e.Generation))
	}
	if len(h.waiters) == 0 {
		return
	}
	switch e.Type {
	case event.ReloadFailed:
		failed := errors.New(e.Message)
		h.waiters.TellOf(e.Generation, failed)
		if !h.Backend.Restarting() { // else another process is started for those who asked later
			h.waiters.TellOf(math.MaxInt, failed)
		}
	case event.ServerReady, event.ServerSpawned:
		// A server that no client has spoken to yet is as ready as it can be once it runs.
		if e.Type == event.ServerReady || h.Backend.Unspoken() {
			h.waiters.TellOf(e.Generation, nil)
		}
	case event.SpawnFailed, event.ServerCrashed, event.ConnectionLost, event.BreakerOpened, event.StartTimeout:
		h.waiters.TellOf(e.Generation, fmt.Errorf("the new server did not become ready: %s", e.Message))
	}
}
