package cli

import (
	"context"
	"strings"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

// entry reads or writes an entry of the fleet's registry.
func (m fleetMember) entry(ctx context.Context, e fleetsocket.Entry) (fleetsocket.EntryAnswer, error) {
	a, err := m.Entry(ctx, e)
	if err != nil {
		return a, unanswered(err.Error())
	}
	switch a.Refused {
	case "":
		return a, nil
	case fleetsocket.NotFound:
		return a, engine.ErrNotFound
	case fleetsocket.Conflict:
		return a, engine.ErrConflict
	case fleetsocket.TooLarge:
		return a, engine.ErrTooLarge
	}
	return a, unanswered("the hub does not answer (" + strings.TrimPrefix(a.Why, engine.ErrUnknown.Error()+": ") + ")")
}

// unanswered is engine.ErrUnknown in words for people.
type unanswered string

// Error implements error.
func (u unanswered) Error() string { return string(u) }

// Is implements what [errors.Is] asks for.
func (u unanswered) Is(target error) bool { return target == engine.ErrUnknown }

// Get implements lease.Registry.
func (m fleetMember) Get(ctx context.Context, key string) (engine.Entry, error) {
	a, err := m.entry(ctx, fleetsocket.Entry{Op: fleetsocket.Get, Key: key})
	if err != nil {
		return engine.Entry{}, err
	}
	return engine.Entry{Key: key, Value: a.Value, Revision: engine.Revision(a.Revision)}, nil
}

// CAS implements lease.Registry.
func (m fleetMember) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	a, err := m.entry(ctx, fleetsocket.Entry{Op: fleetsocket.Write, Key: key, Value: value, Before: uint64(before)})
	return engine.Revision(a.Revision), err
}
