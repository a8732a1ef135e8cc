package bridge

import (
	"bytes"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// listen is one open subscriptions/listen of a modern client. The legacy server has one set of subscribed resources for
// the connection; a resource is in it as long as a listen wants it.
type listen struct {
	*session.Listen          // Acked is what an earlier server has granted
	Lists           []byte   // raw filter of the lists of whose changes it asks to be told, and the server tells; nil: not known yet
	URIs            []string // resources, but those the server has refused
	Waiting         int      // resources that the server has not answered for
	Open            bool     // this server has answered for all of it
}

// listens are the open ones of a modern client.
type listens struct {
	*core

	Open []*listen
}

func (s *listens) find(id []byte) *listen {
	for _, l := range s.Open {
		if jsonrpc.SameID(l.ID, id) {
			return l
		}
	}
	return nil
}

// open takes the listen request in s.env, for a server with these raw capabilities. It is acknowledged when the server
// has answered for all resources.
func (s *listens) open(id, line, capabilities []byte) {
	l := &listen{Listen: &session.Listen{ID: bytes.Clone(id), Line: bytes.Clone(line)}}
	s.Open = append(s.Open, l)
	s.ask(l, member(s.env.Params.Of(line), "notifications"), capabilities)
}

// ask asks the server for what a raw filter names, as far as its raw capabilities allow.
func (s *listens) ask(l *listen, filter, capabilities []byte) {
	l.Lists = mcp.ListenFilter(func(one mcp.List) bool {
		return one.In(filter) && string(member(capabilities, one.Capability(), "listChanged")) == "true"
	}, nil)
	uris := member(filter, "resourceSubscriptions")
	if string(member(capabilities, "resources", "subscribe")) == "true" {
		for at := range jsonrpc.Elements(uris) {
			if len(l.URIs) == mcp.ListenURIsMost {
				break // the acknowledgement lists what is covered
			}
			uri, ok := jsonrpc.Unquote(at.Of(uris))
			if !ok || slices.Contains(l.URIs, uri) {
				continue
			}
			if !s.wanted(uri) {
				l.Waiting++
				s.about(mcp.Subscribe, uri, func([]byte) { s.subscribed(l, uri) })
			}
			l.URIs = append(l.URIs, uri)
		}
	}
	s.acknowledge(l)
}

// wanted reports whether a listen has a resource.
func (s *listens) wanted(uri string) bool {
	return slices.ContainsFunc(s.Open, func(l *listen) bool { return slices.Contains(l.URIs, uri) })
}

// about asks the server something about a resource.
func (s *listens) about(m mcp.Method, uri string, then func(line []byte)) {
	s.askOwn(m, append(jsonrpc.AppendQuoted([]byte(`{"uri":`), uri), '}'), then)
}

// subscribed takes the server's answer for one resource, for which l waits; nil: no listen does. A refused one is removed from all
// listens.
func (s *listens) subscribed(l *listen, uri string) {
	if s.env.Kind != jsonrpc.Response {
		for _, one := range s.Open {
			one.URIs = slices.DeleteFunc(one.URIs, func(other string) bool { return other == uri })
		}
	}
	if slices.Contains(s.Open, l) { // it was not cancelled meanwhile
		l.Waiting--
		s.acknowledge(l)
	}
}

// acknowledge tells the client what is covered, once that is known.
func (s *listens) acknowledge(l *listen) {
	if l.Open || l.Waiting > 0 {
		return
	}
	l.Open = true
	if l.Acked != nil {
		if !mcp.Covers(l.granted(), l.Acked) {
			s.end(l)
			cancelled, answer := mcp.ListenEndedLines(l.ID, mcp.LessIsCovered)
			s.toClient(cancelled)
			s.toClient(answer)
		}
		return
	}
	s.toClient(mcp.AcknowledgedLine(l.ID, l.granted()))
}

// granted is the raw filter of what the client hears of.
func (l *listen) granted() []byte {
	return mcp.ListenFilter(func(one mcp.List) bool { return one.In(l.Lists) }, quoted(l.URIs))
}

// quoted are texts as raw strings.
func quoted(texts []string) [][]byte {
	raw := make([][]byte, len(texts))
	for i, text := range texts {
		raw[i] = jsonrpc.AppendQuoted(nil, text)
	}
	return raw
}

// end ends one that the client has cancelled, and unsubscribes from resources that no other listen wants.
func (s *listens) end(l *listen) {
	s.Open = slices.DeleteFunc(s.Open, func(one *listen) bool { return one == l })
	for _, uri := range l.URIs {
		if !s.wanted(uri) {
			s.about(mcp.Unsubscribe, uri, func([]byte) {})
		}
	}
}

// resubscribe repeats the subscriptions after a new handshake, and asks for those that an earlier server has granted.
func (s *listens) resubscribe(capabilities []byte) {
	var told []string
	for _, l := range s.Open {
		for _, uri := range l.URIs {
			if !slices.Contains(told, uri) {
				told = append(told, uri)
				s.about(mcp.Subscribe, uri, func([]byte) { s.subscribed(nil, uri) })
			}
		}
	}
	for _, l := range slices.Clone(s.Open) {
		if l.Acked != nil && l.Lists == nil {
			s.ask(l, l.Acked, capabilities)
		}
	}
}

// changed sends a change to each listen that wants it.
func (s *listens) changed(m mcp.Method, line []byte) {
	uri, _ := jsonrpc.Unquote(s.env.URI.Of(line))
	params := withoutReserved(s.env.Params.Of(line))
	if params == nil {
		params = []byte("{}")
	}
	name, _ := jsonrpc.Unquote(s.env.Method.Of(line))
	for _, l := range s.Open {
		if !l.Open || !l.wants(m, uri) {
			continue
		}
		s.toClient(jsonrpc.AppendNotification(nil, name, set(params, l.ID, "_meta", mcp.MetaSubscriptionID)))
	}
}

// wants reports whether a change is one that was asked for; a resource may be a part of one that was.
func (l *listen) wants(m mcp.Method, uri string) bool {
	if m != mcp.NoteResourceUpdated {
		return slices.ContainsFunc(mcp.Announced, func(one mcp.List) bool { return one.Changed() == m && one.In(l.Lists) })
	}
	return slices.ContainsFunc(l.URIs, func(one string) bool { return strings.HasPrefix(uri, one) })
}
