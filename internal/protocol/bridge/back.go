package bridge

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// A bridge is removed when the server speaks the client's era again. Requests that no server has got continue as the
// client wrote them.

// Back returns the client's original of a request that the bridge has translated, and forgets it. ok is false for the
// bridge's own requests.
func (b *Bridge) Back(line []byte) (said []byte, ok bool) {
	if b.env.Scan(line) != nil || b.env.Kind != jsonrpc.Request {
		return nil, false
	}
	switch s := b.side.(type) {
	case *legacySide:
		return s.back(line)
	case *modernSide:
		return s.back(line)
	}
	return nil, false
}

func (s *legacySide) back(line []byte) ([]byte, bool) {
	c := onWire(s.Calls, s.env.ID.Of(line))
	if c == nil {
		return nil, false
	}
	delete(s.Calls, c.Wire)
	params := without(withoutReserved(s.env.Params.Of(line)), "inputResponses", "requestState")
	return withParams(line, &s.env, c.ID, params), true
}

func (s *modernSide) back(line []byte) ([]byte, bool) {
	t := onWire(s.Calls, s.env.ID.Of(line))
	if t == nil || !t.awaited() {
		return nil, false
	}
	delete(s.Calls, t.Wire)
	s.Leveling.unsend(t)
	params := s.env.Params.Of(line)
	if params == nil {
		params = []byte("{}")
	}
	return withParams(line, &s.env, t.ID, set(params, t.Meta, "_meta")), true
}

// Unsaid returns the client's messages that the bridge still holds, and forgets them, with all streams.
func (b *Bridge) Unsaid() (said [][]byte) {
	if s, modern := b.side.(*modernSide); modern {
		for _, one := range slices.Clone(s.Leveling.Lines) {
			if line, ok := b.Back(one.Line); ok && one.Begins {
				said = append(said, line)
			}
		}
		for _, one := range s.Queue {
			said = append(said, one.Line)
		}
		for _, l := range s.Listens.Open {
			if !l.Acked && l.Before == nil {
				said = append(said, l.Line)
			}
		}
		s.Queue, s.Listens.Open = nil, nil
	}
	said, b.Held = append(said, b.Held...), nil
	return said
}
