package gateway

import (
	"fmt"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// subscription is a resource subscription of a legacy client. It exists from when the server is asked, so that
// concurrent requests see it.
type subscription struct {
	link    *Link // that was asked
	uri     string
	granted bool
	moved   bool // its client uses the link since before that was ready
}

// subscription returns what the session has of a server's resource, nil for nothing.
func (s *Session) subscription(server *server, uri string) *subscription {
	for _, sub := range s.subs {
		if sub.uri == uri && sub.link.server == server {
			return sub
		}
	}
	return nil
}

// subscribe handles a resources/subscribe or unsubscribe for l. It returns the link to send it to; nil: the request is
// answered, because others have the same subscription to a shared server.
func (s *Session) subscribe(e *exchange, l *Link) *Link {
	mine := s.subscription(l.server, e.uri)
	if e.method == mcp.Subscribe && mine == nil && len(s.subs) >= mcp.ListenURIsMost {
		e.refuse(jsonrpc.InvalidParams, fmt.Sprintf("this session is subscribed to %d resources, the maximum", len(s.subs)))
		return nil
	}
	if e.method == mcp.Unsubscribe {
		s.unsubscribed(e.uri)
	}
	if l.scope.owner == nil {
		if mine != nil && mine.link.phase == ready {
			l = mine.link // with several instances, the subscribed one
		}
		if others, granted := l.scope.others(s, l.server, e.uri); granted != nil && e.method == mcp.Subscribe {
			s.subscribed(granted.link, e.uri)
			e.answer([]byte("{}"))
			return nil
		} else if others && e.method == mcp.Unsubscribe {
			e.answer([]byte("{}"))
			return nil
		}
	}
	if e.method == mcp.Subscribe && mine == nil {
		s.subs = append(s.subs, &subscription{link: l, uri: e.uri})
	}
	return l
}

// others reports whether another client than s of a shared scope has, or is about to have, a subscription, and one of those that a server has
// granted.
func (sc *scope) others(s *Session, server *server, uri string) (any bool, granted *subscription) {
	for other := range sc.members {
		if sub := other.subscription(server, uri); sub != nil && other != s {
			any = true
			if sub.granted {
				return true, sub
			}
		}
	}
	return any, nil
}

// subscribed notes a subscription that a server has granted.
func (s *Session) subscribed(l *Link, uri string) {
	sub := s.subscription(l.server, uri)
	if sub == nil {
		sub = &subscription{link: l, uri: uri}
		s.subs = append(s.subs, sub)
	}
	sub.granted = true
	remember(s)
}

// unsubscribed removes a subscription and returns it, nil if there was none.
func (s *Session) unsubscribed(uri string) *subscription {
	i := slices.IndexFunc(s.subs, func(sub *subscription) bool { return sub.uri == uri })
	if i < 0 {
		return nil
	}
	sub := s.subs[i]
	s.subs = slices.Delete(s.subs, i, i+1)
	if sub.granted {
		remember(s)
	}
	return sub
}

// keepSubscriptions starts the successors of servers with subscriptions.
func (s *Session) keepSubscriptions(gone []*server) {
	for _, sub := range s.subs {
		if !slices.Contains(gone, sub.link.server) {
			continue
		}
		for _, next := range s.gw.servers {
			if next.Catalog.Name == sub.link.Name() && s.has(next) {
				s.own.link(next)
			}
		}
	}
}

// unsubscribe ends a subscription at a shared server if no other client needs it.
func (g *Gateway) unsubscribe(sub *subscription) {
	l := sub.link
	if l.scope.owner != nil || l.phase != ready {
		return // its process ends, or starts without any
	}
	if others, _ := l.scope.others(nil, l.server, sub.uri); others {
		return
	}
	l.askAbout(mcp.Unsubscribe, sub.uri, func(_, _ []byte) {})
}

// moveTo has a subscription go on at another link: at once if others use that already, or when it is ready.
func (s *Session) moveTo(l *Link, sub *subscription) {
	if sub.link, sub.moved = l, l.phase != ready; !sub.moved {
		l.askAbout(mcp.Subscribe, sub.uri, func(result, _ []byte) { renewed(s, l.server, sub.uri, result != nil) })
	}
}

// resubscribe renews its clients' subscriptions at a new process. They are notified, since changes may have been missed.
func (l *Link) resubscribe() {
	lost := map[string][]*Session{}
	for s := range l.gw.sessions.all {
		if s != l.scope.owner && s.pool != l.scope {
			continue
		}
		for _, sub := range s.subs {
			if was := sub.link; !sub.moved && (was == l || was.Name() != l.Name() || was.phase == ready) {
				continue
			}
			sub.link, sub.moved = l, false
			lost[sub.uri] = append(lost[sub.uri], s)
		}
	}
	for _, uri := range sortedKeys(lost) {
		l.askAbout(mcp.Subscribe, uri, func(result, _ []byte) {
			for _, s := range lost[uri] {
				renewed(s, l.server, uri, result != nil)
			}
		})
	}
}

// askAbout asks the server something about a resource.
func (l *Link) askAbout(m mcp.Method, uri string, then func(result, err []byte)) {
	l.ask(m, append(jsonrpc.AppendQuoted([]byte(`{"uri":`), uri), '}'), then)
}
