package bridge

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// Resume begins in the middle of a conversation that the client has with a server of its own era, of which the session is what lasts. It
// is not told what it has been told already; what it says waits until the server is greeted.
func (b *Bridge) Resume(from *session.Session, now time.Time) Output {
	b.begin(now)
	switch s := b.side.(type) {
	case *legacySide:
		s.introduced(from.InitParams, settledVersion(jsonrpc.AppendQuoted(nil, from.Version)))
		s.Params, s.Result = from.InitParams, from.InitResult
		s.Watch = watch{Wanted: from.Initialized}
		s.Level = member(from.LogLevel, "level")
		for _, params := range from.Subscriptions {
			if uri, ok := jsonrpc.Unquote(member(params, "uri")); ok {
				s.Watch.URIs, s.Watch.Missed = append(s.Watch.URIs, uri), true
			}
		}
		s.greet(hello{})
	case *modernSide:
		s.Meta = from.Meta
		for _, l := range from.Listens {
			if l.Acked != nil {
				s.Listens.Open = append(s.Listens.Open, &listen{ID: l.ID, Line: l.Line, Before: l.Acked})
			}
		}
		if len(s.Listens.Open) > 0 {
			s.greeted(abilitiesOf(member(s.Meta, mcp.MetaClientCapabilities)), s.Meta)
		}
	}
	return b.out
}

// Ready reports whether the server is greeted.
func (b *Bridge) Ready() bool { return b.Phase == ready }

// Session returns what lasts of the client's conversation, in the client's words. It is empty before a legacy client's handshake is over,
// or a modern one's first request.
func (b *Bridge) Session() (out session.Session) {
	switch s := b.side.(type) {
	case *legacySide:
		if s.Params == nil {
			break
		}
		out = session.Session{Era: mcp.Legacy, InitParams: s.Params, Version: s.Version, InitResult: s.Result, Initialized: s.Watch.Wanted}
		if s.Level != nil {
			out.SetLogLevel(append(append([]byte(`{"level":`), s.Level...), '}'))
		}
		for _, uri := range s.Watch.URIs {
			out.Subscribe(append(jsonrpc.AppendQuoted([]byte(`{"uri":`), uri), '}'))
		}
	case *modernSide:
		if s.Meta == nil {
			break
		}
		out.Era = mcp.Modern
		out.KeepMeta(s.Meta)
		for _, l := range s.Listens.Open {
			kept := out.OpenListen(l.ID, l.Line, member(l.Line, "params"))
			if kept.Acked = l.Before; l.Acked {
				kept.Acked = l.granted()
			}
		}
	}
	return out
}

// Quiet reports whether nothing that client and server have begun is open: what lasts is what Session returns.
func (b *Bridge) Quiet() bool {
	switch s := b.side.(type) {
	case *legacySide:
		return s.Phase == ready && len(s.Held)+len(s.Calls)+len(s.Watch.Waiting) == 0
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
	s.refuseHeld(jsonrpc.InternalError, text, false)
}
