package main

import (
	"context"
	"errors"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

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
