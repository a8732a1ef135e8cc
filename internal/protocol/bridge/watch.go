package bridge

import (
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A subscription that the server has ended is renewed after watchFirst, doubling to watchMost.
const (
	watchFirst = time.Second
	watchMost  = 5 * time.Minute
)

// watch is the bridge's one subscriptions/listen on behalf of a legacy client. Its filter cannot be changed: a new one
// is opened, and the old one ended once the new is acknowledged, so that nothing is missed.
type watch struct {
	Now, Next *stream   // the acknowledged one, and its successor
	URIs      []string  // that the client has subscribed to
	Again     time.Time // when an ended one is opened again
	Ends      int       // how often it ended in a row
	Missed    bool      // changes may have been missed before Next
	Resting   bool      // the server sleeps, and must not be woken for the bridge's own subscription
}

// stream is one subscriptions/listen.
type stream struct {
	ID    string // raw
	URIs  []string
	Until time.Time // when it has to be acknowledged
}

// covers reports whether the client has subscribed to a resource, or to one that it is part of.
func (w *watch) covers(uri string) bool {
	return slices.ContainsFunc(w.URIs, func(one string) bool { return strings.HasPrefix(uri, one) })
}

// subscribe takes resources/subscribe and unsubscribe.
func (s *legacySide) subscribe(m mcp.Method, line []byte) {
	id := s.env.ID.Of(line)
	uri, ok := jsonrpc.Unquote(s.env.URI.Of(line))
	switch {
	case string(member(s.Offer, "resources", "subscribe")) != "true":
		s.toClient(notFound(id))
		return
	case !ok:
		s.refuse(id, jsonrpc.InvalidParams, "invalid params: uri is missing")
		return
	}
	w := &s.Watch
	known := slices.Contains(w.URIs, uri)
	if m == mcp.Unsubscribe {
		w.URIs = slices.DeleteFunc(w.URIs, func(one string) bool { return one == uri })
		s.toClient(jsonrpc.AppendResult(nil, id, nil))
		if known {
			s.renew()
		}
		return
	}
	if known && w.Now != nil && slices.Contains(w.Now.URIs, uri) {
		s.toClient(jsonrpc.AppendResult(nil, id, nil))
		return
	}
	if !known {
		w.URIs = append(w.URIs, uri)
	}
	c := s.newCall(m, line)
	c.URI = uri
	if w.Next != nil && slices.Contains(w.Next.URIs, uri) {
		c.Stream = w.Next.ID
	}
	s.Calls.add(c)
	s.renew()
}

// subscribing reports whether a resources/subscribe waits for a stream.
func (s *legacySide) subscribing() bool {
	return s.Calls.has(func(c *Call) bool { return c.Method == mcp.Subscribe })
}

// openWatch listens for list changes, if the server supports any.
func (s *legacySide) openWatch() {
	s.Initialized = true
	if s.Watch.Now == nil && s.Watch.Next == nil && !s.Watch.Resting {
		s.renew()
	}
}

// rest ends the bridge's own stream, unless the client has subscriptions.
func (s *legacySide) rest() {
	if len(s.Watch.URIs) == 0 && !s.subscribing() {
		s.closeWatch("the server is not needed for now")
		s.Watch.Resting = true
	}
}

// wake opens again what rest has ended.
func (s *legacySide) wake() {
	if s.Watch.Resting {
		s.Watch.Resting = false
		if s.Initialized {
			s.openWatch()
		}
	}
}

// filter is the filter to listen with; nil for nothing.
func (s *legacySide) filter() []byte {
	uris := s.Watch.URIs
	if string(member(s.Offer, "resources", "subscribe")) != "true" {
		uris = nil
	}
	out := mcp.ListenFilter(func(list mcp.List) bool { return string(member(s.Offer, list.Capability(), "listChanged")) == "true" }, quoted(uris))
	if len(out) == len("{}") {
		return nil
	}
	return out
}

// renew opens a listen with the present filter, unless one is being opened, after which this is repeated.
func (s *legacySide) renew() {
	w := &s.Watch
	if w.Next != nil {
		return
	}
	w.Again, w.Resting = time.Time{}, false
	filter := s.filter()
	if filter == nil {
		s.endStream(w.Now, replaced)
		w.Now = nil
		return
	}
	next := &stream{URIs: slices.Clone(w.URIs), Until: s.now.Add(listenFor)}
	params := set(set([]byte("{}"), s.envelope(), "_meta"), filter, "notifications")
	next.ID = s.askOwn(mcp.Listen, params, func(line []byte) { s.watchEnded(next.ID, line) }).Wire
	w.Next = next
	for _, c := range s.Calls {
		if c.Method == mcp.Subscribe {
			c.Stream = next.ID
		}
	}
}

// replaced is the reason for ending a stream whose filter is outdated.
const replaced = "another subscription has taken its place"

func (s *legacySide) endStream(one *stream, why string) {
	if one != nil {
		s.toServer(mcp.CancelledLine([]byte(one.ID), why))
	}
}

// acknowledged takes the server's acknowledgement.
func (s *legacySide) acknowledged(line []byte) {
	w := &s.Watch
	if w.Next == nil || string(subscriptionOf(s.env.Params.Of(line))) != w.Next.ID {
		return
	}
	s.endStream(w.Now, replaced)
	w.Now, w.Next, w.Ends = w.Next, nil, 0
	granted := member(s.env.Params.Of(line), "notifications", "resourceSubscriptions")
	s.settle(w.Now, granted, []byte(tellsNothing))
	refused := func(uri string) bool { return !contains(granted, uri) }
	w.URIs = slices.DeleteFunc(w.URIs, func(uri string) bool { return slices.Contains(w.Now.URIs, uri) && refused(uri) })
	w.Now.URIs = slices.DeleteFunc(w.Now.URIs, refused)
	for _, uri := range w.Now.URIs {
		if w.Missed && slices.Contains(w.URIs, uri) {
			s.toClient(mcp.UpdatedLine(jsonrpc.AppendQuoted(nil, uri), nil))
		}
	}
	w.Missed = false
	if s.subscribing() || !slices.Equal(w.Now.URIs, w.URIs) {
		s.renew()
	}
}

// The raw errors for a subscription that the server does not grant, and for one that it does not answer.
const (
	tellsNothing = `{"code":-32602,"message":"the server does not tell of changes of this resource"}`
	staysSilent  = `{"code":-32603,"message":"the server has not answered in time; it is safe to retry"}`
)

// settle answers who waits for a stream. granted are the raw resources that it covers, why is the raw error for the others.
func (s *legacySide) settle(one *stream, granted, why []byte) {
	w := &s.Watch
	for _, c := range slices.Clone(s.Calls) {
		switch {
		case c.Stream != one.ID:
			continue
		case contains(granted, c.URI):
			s.toClient(jsonrpc.AppendResult(nil, c.ID, nil))
		default:
			w.URIs = slices.DeleteFunc(w.URIs, func(uri string) bool { return uri == c.URI })
			s.toClient(jsonrpc.AppendErrorObject(nil, c.ID, why))
		}
		s.Calls.remove(c)
	}
}

// watchEnded handles the end of a stream, by its raw id, which the server has told with a line.
func (s *legacySide) watchEnded(id string, line []byte) {
	w := &s.Watch
	switch {
	case w.Next != nil && id == w.Next.ID:
		why := []byte(tellsNothing)
		if s.env.Kind == jsonrpc.ErrorResponse && s.mayListen(line) {
			why = s.env.Error.Of(line)
		}
		s.settle(w.Next, nil, why)
		w.Next = nil
	case w.Now != nil && id == w.Now.ID:
		w.Now = nil
		w.Missed = true
	default:
		return
	}
	s.openLater(s.mayListen(line))
}

// openLater replaces a stream that has ended: now for those who subscribed while it was being opened, or after a pause
// if none is left and may says that another is possible.
func (s *legacySide) openLater(may bool) {
	w := &s.Watch
	switch {
	case s.subscribing():
		s.renew()
	case may && w.Now == nil && w.Next == nil:
		w.Again = s.now.Add(min(watchFirst<<min(w.Ends, 10), watchMost))
		w.Ends++
	}
}

// mayListen reports whether an ended stream may be opened again: the server ended it, or is unreachable just now. Any
// other error says that the server has no such streams.
func (s *legacySide) mayListen(line []byte) bool {
	return s.env.Kind != jsonrpc.ErrorResponse || jsonrpc.ErrorCode(s.env.Error.Of(line)) == jsonrpc.InternalError
}

// changed forwards a change once: from the present stream, or the one being opened if there is none, and only while the
// client wants it.
func (s *legacySide) changed(line []byte) {
	params := s.env.Params.Of(line)
	current := s.Watch.Now
	if current == nil {
		current = s.Watch.Next
	}
	if id := subscriptionOf(params); id != nil && (current == nil || string(id) != current.ID) {
		return
	}
	if mcp.Lookup(s.env.Method.Of(line)) == mcp.NoteResourceUpdated {
		if uri, _ := jsonrpc.Unquote(s.env.URI.Of(line)); !s.Watch.covers(uri) {
			return
		}
	}
	s.toClient(s.plain(line))
}

// closeWatch ends everything.
func (s *legacySide) closeWatch(why string) {
	s.endStream(s.Watch.Now, why)
	s.endStream(s.Watch.Next, why)
	s.Watch = watch{Resting: s.Watch.Resting}
}

func (s *legacySide) tickWatch() {
	w := &s.Watch
	if w.Next != nil && s.due(w.Next.Until) {
		late := w.Next
		w.Next = nil
		s.endStream(late, replaced)
		s.settle(late, nil, []byte(staysSilent))
		s.openLater(true)
	}
	if s.due(w.Again) {
		s.renew()
	}
}

func (s *legacySide) watchDeadline() time.Time {
	at := s.Watch.Again
	if s.Watch.Next != nil {
		at = deadline.Earliest(at, s.Watch.Next.Until)
	}
	return at
}

// subscriptionOf returns the raw id of the listen that a notification's params belong to, nil for none.
func subscriptionOf(params []byte) []byte {
	return member(params, "_meta", mcp.MetaSubscriptionID)
}

// contains reports whether a raw array has a string.
func contains(array []byte, text string) bool {
	for at := range jsonrpc.Elements(array) {
		if jsonrpc.EqualString(at.Of(array), text) {
			return true
		}
	}
	return false
}
