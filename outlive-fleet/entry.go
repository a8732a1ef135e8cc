package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

// gatewayAsks is longer than a gateway whose sessions are in the fleet asks for nothing: it renews its lease every 4 s.
const gatewayAsks = 30 * time.Second

// entries tells whether a gateway here has its sessions in the fleet.
type entries struct {
	mu   sync.Mutex
	last time.Time
}

func (e *entries) used() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = time.Now()
}

// lately reports whether one has asked for something a moment ago.
func (e *entries) lately() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Since(e.last) < gatewayAsks
}

// doEntry has the registry do what a gateway here asks for.
func doEntry(ctx context.Context, r engine.Registry, e fleetsocket.Entry) (a fleetsocket.EntryAnswer) {
	var err error
	var revision engine.Revision
	switch e.Op {
	case fleetsocket.Get:
		var got engine.Entry
		got, err = r.Get(ctx, e.Key)
		a.Value, revision = got.Value, got.Revision
	case fleetsocket.Write:
		revision, err = r.CAS(ctx, e.Key, e.Value, engine.Revision(e.Before))
	case fleetsocket.Delete:
		err = r.Delete(ctx, e.Key)
	default:
		err = errors.New("there is no operation " + e.Op)
	}
	a.Revision = uint64(revision)
	switch {
	case err == nil:
		return a
	case errors.Is(err, engine.ErrNotFound):
		a.Refused = fleetsocket.NotFound
	case errors.Is(err, engine.ErrConflict):
		a.Refused = fleetsocket.Conflict
	case errors.Is(err, engine.ErrTooLarge):
		a.Refused = fleetsocket.TooLarge
	default:
		a.Refused = fleetsocket.Maybe
	}
	a.Why = err.Error()
	return a
}
