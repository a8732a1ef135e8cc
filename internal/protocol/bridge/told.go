package bridge

import (
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
		s.InitResult, s.Initialized, s.LogLevel = from.InitResult, from.Initialized, from.LogLevel
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
				s.Listens.Open = append(s.Listens.Open, &listen{Listen: l})
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
		if s.InitParams == nil || !s.Answered() {
			break
		}
		out = s.Session
		out.Era = mcp.Legacy
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
			if l.Open {
				l.Acked = l.granted()
			}
			out.Listens = append(out.Listens, l.Listen)
		}
	}
	return out
}

// Quiet reports whether no request is open that the server may know nothing of: a call whose client is asked, or a subscription that waits
// for the stream before it. What else is open is at the server, or waits: see Waiting.
func (b *Bridge) Quiet() bool {
	living, _ := b.Calls.apart()
	return len(living) == 0 && (b.Phase == ready || b.Client() == mcp.Modern)
}

// Back returns the client's request for a call, which no server has got, and forgets the call. nil: its client waits for no answer, or it
// is the bridge's own.
func (b *Bridge) Back(c *Call) []byte {
	if !slices.Contains(b.Calls, c) || !c.awaited() {
		return nil
	}
	b.Calls.remove(c)
	return c.afresh()
}

// afresh is what the client would say for the call to begin anew: only this bridge knows of its rounds.
func (c *Call) afresh() []byte {
	params := member(c.Line, "params")
	if c.Rounds == 0 || params == nil {
		return c.Line
	}
	return set(c.Line, without(params, "inputResponses", "requestState"), "params")
}

// Unsaid returns the client's messages that the bridge still holds, and forgets them, with all streams.
func (b *Bridge) Unsaid() (said [][]byte) {
	s, modern := b.side.(*modernSide)
	if !modern {
		if old := b.side.(*legacySide); old.Hello.ID != nil { // its initialize has no answer yet
			said = append(said, jsonrpc.AppendRequest(nil, old.Hello.ID, mcp.Initialize.String(), old.InitParams))
			old.Hello = hello{}
		}
		return said
	}
	for _, c := range s.Queue {
		said = append(said, c.Line)
	}
	for _, l := range s.Listens.Open {
		if !l.Open && l.Acked == nil {
			said = append(said, l.Line)
		}
	}
	s.Queue, s.Listens.Open = nil, nil
	return said
}
