package bridge

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Told is the lasting part of a client's conversation. A bridge that comes in the middle is given it, and one that goes gives it back.
type Told struct {
	Meta    []byte   // raw _meta of a modern client's first request
	Streams []Stream // the open ones of a modern client; the rest is of legacy clients

	Params      []byte // raw, of the client's initialize
	Result      []byte // raw, that it was given
	Version     string // both settled on
	Initialized bool   // the client has sent notifications/initialized
	Level       []byte // raw log level that it has set, nil for none
	URIs        []string
}

// Resume begins in the middle of a conversation that the client has with a server of its own era. It is not told what it has been told
// already; what it says waits until the server is greeted.
func (b *Bridge) Resume(told Told, now time.Time) Output {
	b.begin(now)
	switch s := b.side.(type) {
	case *legacySide:
		s.introduced(told.Params, settledVersion(jsonrpc.AppendQuoted(nil, told.Version)))
		s.Params, s.Result, s.Level = told.Params, told.Result, told.Level
		s.Watch = watch{Wanted: told.Initialized, URIs: told.URIs, Missed: len(told.URIs) > 0}
		s.greet(hello{})
	case *modernSide:
		s.Meta = told.Meta
		for _, one := range told.Streams {
			s.Listens.Open = append(s.Listens.Open, &listen{ID: one.ID, Line: one.Line, Before: one.Granted})
		}
		if len(told.Streams) > 0 {
			s.greeted(abilitiesOf(member(told.Meta, mcp.MetaClientCapabilities)), told.Meta)
		}
	}
	return b.end()
}

// Ready reports whether the server is greeted.
func (b *Bridge) Ready() bool { return b.Phase == ready }

// Told returns what both have said; ok is false before a legacy client's handshake is over, or a modern one's first request.
func (b *Bridge) Told() (told Told, ok bool) {
	if s, modern := b.side.(*modernSide); modern {
		return Told{Meta: s.Meta, Streams: s.Listens.streams()}, s.Meta != nil
	}
	s, legacy := b.side.(*legacySide)
	if !legacy || s.Params == nil {
		return Told{}, false
	}
	return Told{
		Params: s.Params, Result: s.Result, Version: s.Version, Initialized: s.Watch.Wanted, Level: s.Level, URIs: s.Watch.URIs,
	}, true
}

// Quiet reports whether nothing that client and server have begun is open: what lasts is what Told returns.
func (b *Bridge) Quiet() bool {
	switch s := b.side.(type) {
	case *legacySide:
		return s.Phase == ready && len(s.Held)+len(s.Calls)+len(s.Asks)+len(s.Watch.Waiting) == 0
	case *modernSide:
		opening := slices.ContainsFunc(s.Listens.Open, func(l *listen) bool { return !l.Acked })
		calls, _ := s.Calls.byAge()
		return !s.waiting() && !opening && len(calls)+len(s.Questions.Open) == 0
	}
	return false
}

// greeted answers the client's initialize from the server's DiscoverResult.
func (s *legacySide) greeted(discover []byte) {
	s.reach(ready)
	s.Offer = bytes.Clone(member(discover, "capabilities"))
	s.Result = initializeResult(discover, s.Version, s.Extended)
	if s.Hello.ID != nil {
		s.Params = s.Hello.Params
		s.toClient(jsonrpc.AppendResult(nil, s.Hello.ID, s.Result))
	} else if s.Watch.Wanted || len(s.Watch.URIs) > 0 { // it has its answer
		s.renew()
	}
}

// notGreeted answers the client's initialize, and its later requests, with the reason why the server cannot be used.
func (s *legacySide) notGreeted(text string) {
	s.reach(noHandshake)
	if s.Hello.ID != nil {
		s.refuse(s.Hello.ID, jsonrpc.InternalError, text)
	}
	for len(s.Held) > 0 {
		line := s.Held[0]
		if s.env.Scan(line) == nil && s.env.Kind == jsonrpc.Request {
			if mcp.Lookup(s.env.Method.Of(line)) == mcp.Initialize {
				return // it tries again, and what follows is for that
			}
			s.refuse(s.env.ID.Of(line), jsonrpc.InternalError, text)
		}
		s.Held = s.Held[1:]
	}
}
