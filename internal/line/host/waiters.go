package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// ErrEnded is returned to those who ask something of a host that is no more.
var ErrEnded = errors.New("outlive has shut down")

// restartWaiter is somebody who waits for the restart he asked for.
type restartWaiter struct {
	newest int // the newest process when he asked: those after it were started for him
	tell   func(error)
}

// Restart replaces the server and returns when the new one is ready, or says why it is not. One that sleeps, or waits until it
// is needed, has nothing to be replaced; when it is needed its launcher is asked for it, if it has one. Any goroutine.
func (h *Host) Restart(ctx context.Context, source supervise.Source, reason string) error {
	done := make(chan error, 1)
	h.loop.Post(func() {
		if h.Backend.Asleep() {
			h.shortcut.command = nil
			done <- nil
			return
		}
		h.waiters = append(h.waiters, restartWaiter{h.Backend.Newest(), func(err error) { done <- err }})
		h.Backend.Restart(time.Now(), source, reason)
	})
	select {
	case err := <-done:
		return err
	case <-h.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
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
		h.tellNewer(e.Generation, failed)
		if !h.Backend.Restarting() { // else another process is started for those who asked later
			h.tellWaiters(failed)
		}
	case event.ServerReady, event.ServerSpawned:
		// A server that no client has spoken to yet is as ready as it can be once it runs.
		if e.Type == event.ServerReady || h.Backend.Unspoken() {
			h.tellNewer(e.Generation, nil)
		}
	case event.SpawnFailed, event.ServerCrashed, event.ConnectionLost, event.BreakerOpened, event.StartTimeout:
		h.tellNewer(e.Generation, fmt.Errorf("the new server did not become ready: %s", e.Message))
	}
}

// tellNewer tells those who asked before the process of that generation was started.
func (h *Host) tellNewer(generation int, err error) {
	h.waiters = slices.DeleteFunc(h.waiters, func(w restartWaiter) bool {
		if w.newest < generation {
			w.tell(err)
		}
		return w.newest < generation
	})
}

func (h *Host) tellWaiters(err error) {
	for _, w := range h.waiters {
		w.tell(err)
	}
	h.waiters = nil
}
