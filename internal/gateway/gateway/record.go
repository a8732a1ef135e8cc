package gateway

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
)

// record is what another gateway needs to go on with a session of the legacy era.
type record struct {
	session.Record
	Servers []string           `json:"subscribed_at,omitempty"` // of each of Subscribed: the server's name
	Shown   [mcp.Lists]digests `json:"shown"`                   // each list as the client has read it; nil: it has not
}

// digests identify what a list shows of each server, by its name.
type digests map[string][]byte

// together identifies the whole list.
func (d digests) together() (all [catalog.DigestSize]byte) {
	for _, one := range d {
		subtle.XORBytes(all[:], all[:], one)
	}
	return all
}

// readRecord reads a record; false: it cannot be used.
func readRecord(text []byte) (r record, ok bool) {
	err := json.Unmarshal(text, &r)
	return r, err == nil && r.Format == session.RecordVersion && jsonrpc.IsObject(r.InitParams) && mcp.IsLegacy(r.Version) &&
		len(r.Servers) == len(r.Subscriptions)
}

// lossLevel is that of the message about what a session has lost.
const lossLevel = "warning"

// loss tells the client of a record what it has lost with the gateway before this one; nil: nothing, or it wants no such messages. Who has
// read no list and subscribed to nothing has had no process yet.
func (r *record) loss() []byte {
	had := len(r.Subscriptions) > 0 || slices.ContainsFunc(r.Shown[:], func(shown digests) bool { return shown != nil })
	level := jsonrpc.Find(r.LogLevel, "level").Of(r.LogLevel)
	if !had || mcp.Severity(level) > mcp.Severity(jsonrpc.AppendQuoted(nil, lossLevel)) {
		return nil
	}
	return mcp.LogLine(lossLevel, "This session goes on in another process of outlive: what servers had in memory for it is lost, and messages that were on their way may be")
}

// remember has the session's record stored. It is called when the record has changed, which no plain request does.
func remember(s *Session) {
	if s.keep == nil || s.own == nil || s.ended {
		return
	}
	r := record{Record: session.Record{Format: session.RecordVersion, Session: session.Session{
		Era: mcp.Legacy, InitParams: s.initParams, Version: s.version, LogLevel: s.level,
	}}}
	for _, sub := range s.subs {
		if sub.granted {
			r.Subscriptions = append(r.Subscriptions, append(jsonrpc.AppendQuoted([]byte(`{"uri":`), sub.uri), '}'))
			r.Servers = append(r.Servers, sub.link.Name())
		}
	}
	for l := range mcp.Lists {
		r.Shown[l] = s.before[l]
		if view := s.seen[l]; view != nil {
			r.Shown[l] = view.Digests(l)
		}
	}
	text, err := json.Marshal(r)
	if err == nil { // there is nothing in it that could fail
		s.keep(text)
	}
}

// resume goes on from a record, in a session that is new here. Processes are started for subscriptions only; others when a
// request needs them.
func resume(s *Session, now time.Time, r record) {
	s.gw.now = now
	introduce(s, r.InitParams, r.Version)
	s.own.presumes = true
	s.before = r.Shown
	if r.LogLevel != nil {
		s.level, s.severity = r.LogLevel, max(mcp.Severity(jsonrpc.Find(r.LogLevel, "level").Of(r.LogLevel)), 0)
		s.pool.levelAll()
	}
	for i, params := range r.Subscriptions {
		if uri, ok := jsonrpc.Unquote(jsonrpc.Find(params, "uri").Of(params)); ok {
			subscribeAgain(s, r.Servers[i], uri)
		}
	}
	s.own.changed() // the lists may have
	s.gw.flush()
}

// subscribeAgain renews a subscription that the client has had at another gateway, if the server is still there.
func subscribeAgain(s *Session, name, uri string) {
	for _, server := range s.gw.servers {
		if server.Catalog.Name != name || !s.has(server) {
			continue
		}
		if l := s.own.link(server); l != nil {
			sub := &subscription{uri: uri, granted: true}
			s.subs = append(s.subs, sub)
			s.moveTo(l, sub)
		}
	}
}

// renewed notes that a new process has granted a subscription, or not.
func renewed(s *Session, server *server, uri string, granted bool) {
	switch sub := s.subscription(server, uri); {
	case !granted:
		s.unsubscribed(uri)
	case sub != nil && sub.granted: // changes may have been missed
		s.general.Send(mcp.UpdatedLine(jsonrpc.AppendQuoted(nil, uri), nil))
	}
}

// listHasChanged reports whether a list that the client has read shows something else now, and counts it as told. What a
// record says of servers that are not known yet is compared when they are.
func listHasChanged(s *Session, l mcp.List, now *catalog.View) bool {
	was := s.before[l]
	if was == nil {
		return s.seen.differs(l, now)
	}
	is, all := digests(now.Digests(l)), true
	for _, server := range s.gw.servers {
		if s.has(server) && !s.own.knows(server) {
			all = false
			is[server.Catalog.Name] = was[server.Catalog.Name]
		}
	}
	same := was.together() == is.together()
	if all || !same {
		s.before[l], s.seen[l] = nil, now
	}
	return !same
}

// A session that goes on from a record has no processes, and reading lists would start every server. So until its client
// reads a list, or calls what no list has, its scope presumes that servers show what they have shown to any client.

// knows reports whether the server's lists are known as the scope's client is shown them.
func (sc *scope) knows(s *server) bool { return sc.excluded(s) || sc.shownLists(s) != nil }

// noLongerPresume has the lists read as for any other client.
func (sc *scope) noLongerPresume() {
	if sc.presumes {
		sc.presumes = false
		sc.outdated()
	}
}

// busy says what is in progress that would be lost if the gateway ended now; "": nothing.
func (g *Gateway) busy() string {
	calls, questions := 0, len(g.asks)
	for s := range g.sessions.all {
		for _, e := range s.calls {
			if e.method != mcp.Listen {
				calls++
			}
		}
	}
	switch {
	case calls > 0:
		return fmt.Sprintf("%d calls are in flight", calls)
	case questions > 0:
		return fmt.Sprintf("%d questions of servers wait for their clients", questions)
	}
	return ""
}

// Busy says what is in progress that would be lost if the gateway ended now; "": nothing. Any goroutine.
func (r *Runner) Busy() string {
	why, err := lineloop.Ask(context.Background(), r.loop, r.ended, ErrEnded, r.gw.busy)
	if err != nil {
		return "the gateway is ending"
	}
	return why
}
