package gateway

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// scope is the set of links that somebody uses: one client of the legacy era, or all of the modern one. What its servers
// show, merged, is what its clients see.
type scope struct {
	gw    *Gateway
	era   mcp.Era
	owner *Session // nil: many use it
	links map[*server][]*Link

	view      *catalog.View
	stale     bool
	opened    bool      // somebody needs all servers
	scouted   bool      // somebody has asked which era they speak
	held      []held    // requests that wait until the servers have shown their lists
	changedAt time.Time // when clients are to be told of what has changed; zero: nothing has
	listens   []*listen
}

// held is a request that cannot be answered before more is known of the servers.
type held struct {
	exchange *exchange
	enough   func(*scope) bool
	again    func()
}

func newScope(g *Gateway, era mcp.Era, owner *Session) *scope {
	return &scope{gw: g, era: era, owner: owner, links: map[*server][]*Link{}, stale: true}
}

// link returns the link to use for a call to s, opening it if need be; nil if s does not speak the scope's era.
func (sc *scope) link(s *server) *Link {
	if sc.owner != nil && s.Shared {
		return sc.gw.common.link(s)
	}
	if sc.era == mcp.Modern && s.modern == refuses {
		return nil
	}
	sc.open(s)
	var best *Link
	for _, l := range sc.links[s] {
		if best == nil || l.rank() < best.rank() || l.rank() == best.rank() && l.load() < best.load() {
			best = l
		}
	}
	return best
}

// all returns the links of s that the scope has, open or not.
func (sc *scope) all(s *server) []*Link {
	if sc.owner != nil && s.Shared {
		return sc.gw.common.links[s]
	}
	return sc.links[s]
}

// open makes the links of s.
func (sc *scope) open(s *server) {
	if len(sc.links[s]) > 0 || sc.gw.closing {
		return
	}
	n := 1
	if sc.owner == nil {
		n = max(s.Instances, 1)
	}
	for range n {
		l := newLink(sc, s, sc.opened || s.bridged)
		sc.links[s] = append(sc.links[s], l)
		l.greet()
	}
}

// openAll makes the links of every server that can be used in the era, as far as servers are to be started before they are
// needed.
func (sc *scope) openAll() {
	sc.opened = true
	for _, s := range sc.gw.servers {
		switch {
		case sc.owner != nil && s.Shared:
			sc.gw.common.open(s)
		case sc.era == mcp.Modern && s.modern == refuses:
		default:
			sc.open(s)
		}
	}
}

// scout finds out which servers speak the modern era: those that are known not to are not started for that.
func (sc *scope) scout() {
	for _, s := range sc.gw.servers {
		if s.modern != refuses && !s.bridged {
			sc.open(s)
		}
	}
}

// serversChanged adapts the scope to another configuration. What waited for a server that is configured differently now
// waits for its successor.
func (sc *scope) serversChanged(gone []*server) {
	var homeless []*exchange
	for _, s := range gone {
		links := sc.links[s]
		delete(sc.links, s)
		for _, l := range links {
			homeless = append(homeless, l.waiting...)
			l.waiting = nil
			l.retire()
		}
	}
	switch {
	case sc.opened:
		sc.openAll()
	case sc == sc.gw.modern && (sc.gw.warm || sc.scouted):
		sc.scout()
	}
	if sc.owner != nil {
		sc.owner.keepSubscriptions(gone)
	}
	sc.changed()
	for _, e := range homeless {
		sc.rehouse(e)
	}
}

// rehouse gives a request that was not sent yet to the server that has taken the place of the one it was for.
func (sc *scope) rehouse(e *exchange) {
	for _, s := range sc.gw.servers {
		if s.Catalog.Name != e.link.Name() {
			continue
		}
		if l := sc.link(s); l != nil {
			l.give(e)
			return
		}
	}
	e.refuse(jsonrpc.InternalError, "the server was taken out of the configuration before it was ready")
}

// each yields the scope's links in the order of the configuration.
func (sc *scope) each(yield func(*Link) bool) {
	for _, s := range sc.gw.servers {
		for _, l := range sc.links[s] {
			if !yield(l) {
				return
			}
		}
	}
}

// lists returns what s shows in this scope, or has shown to clients that can do the same; nil if nothing is known.
func (sc *scope) lists(s *server) *catalog.Lists {
	if sc.owner != nil && s.Shared {
		sc = sc.gw.common
	}
	for _, l := range sc.links[s] {
		if l.listed() {
			return l.lists.all
		}
	}
	return s.known.of(sc.key())
}

// key stands for what the scope's servers are told that their client can do.
func (sc *scope) key() string {
	switch {
	case sc.era == mcp.Modern:
		return modernKey(sc.gw.can)
	case sc.owner != nil:
		return sc.owner.key
	}
	return capabilityKey(sc.gw.introduction())
}

// complete reports whether every server has shown its lists, or is not waited for.
func (sc *scope) complete() bool {
	for _, s := range sc.gw.servers {
		if sc.lists(s) != nil {
			continue
		}
		for _, l := range sc.all(s) {
			if l.hopeful() {
				return false
			}
		}
	}
	return true
}

// current is what the scope's clients see.
func (sc *scope) current() *catalog.View {
	if sc.stale || sc.view == nil {
		servers := make([]catalog.Server, len(sc.gw.servers))
		lists := make([]*catalog.Lists, len(sc.gw.servers))
		for i, s := range sc.gw.servers {
			servers[i] = s.Catalog
			if !sc.excluded(s) {
				lists[i] = sc.lists(s)
			}
		}
		sc.view, sc.stale = sc.gw.book.Merge(servers, lists), false
		if sc == sc.gw.modern {
			sc.gw.mirrors.note(sc.view)
		}
	}
	return sc.view
}

// excluded reports whether the scope's clients cannot use s: it does not speak their era.
func (sc *scope) excluded(s *server) bool {
	if sc.era == mcp.Modern {
		return s.modern == refuses
	}
	return s.legacy == refuses
}

// changed notes that some server shows something else than before.
func (sc *scope) changed() {
	sc.stale = true
	if sc.changedAt.IsZero() {
		sc.changedAt = sc.gw.now.Add(changedAfter)
		sc.gw.at(sc.changedAt)
	}
	sc.release()
	if sc == sc.gw.common {
		for s := range sc.gw.sessions.all {
			if s.own != nil {
				s.own.changed()
			}
		}
	}
}

// whenListed runs again once the lists are known of every server that is worth waiting for.
func (sc *scope) whenListed(e *exchange, again func()) {
	if !sc.opened {
		sc.openAll()
	}
	sc.hold(e, (*scope).complete, again)
}

// hold runs again now if enough is known, or once it is.
func (sc *scope) hold(e *exchange, enough func(*scope) bool, again func()) {
	if enough(sc) {
		again()
		return
	}
	sc.held = append(sc.held, held{e, enough, again})
}

// release lets held requests go on that have nothing more to wait for.
func (sc *scope) release() {
	if len(sc.held) == 0 {
		return
	}
	waiting := sc.held
	sc.held = nil
	for _, h := range waiting {
		switch e := h.exchange; {
		case e.session.calls[e.id] != e: // cancelled, or its client has left
		case h.enough(sc):
			h.again()
		default:
			sc.held = append(sc.held, h)
		}
	}
}

// tick lets everything happen whose time has come.
func (sc *scope) tick() {
	g := sc.gw
	for l := range sc.each {
		l.tick()
	}
	sc.release()
	switch {
	case sc.changedAt.IsZero():
	case g.now.Before(sc.changedAt):
		g.at(sc.changedAt)
	default:
		sc.changedAt = time.Time{}
		sc.tellChanges()
	}
}

// seen is what a client has read of the lists: the view it was when it did.
type seen [mcp.Lists]*catalog.View

// differs reports whether a list that was read is another one now, and notes that its reader was told.
func (s *seen) differs(l mcp.List, now *catalog.View) bool {
	was := s[l]
	if was == nil || was == now {
		return false
	}
	s[l] = now
	return !was.Same(l, now)
}

// tellChanges tells the scope's clients which of the lists they have read are others now.
func (sc *scope) tellChanges() {
	view := sc.current()
	if sc.owner != nil {
		told := map[mcp.Method]bool{}
		for l := range mcp.Lists {
			if sc.owner.seen.differs(l, view) && !told[l.Changed()] {
				told[l.Changed()] = true
				sc.owner.general.Send(mcp.ChangedLine(l, nil))
			}
		}
	}
	for _, l := range slices.Clone(sc.listens) {
		l.tellChanges(view)
		l.exchange.session.listenForResources(l)
	}
}

// closeAll ends every link.
func (sc *scope) closeAll() {
	for _, l := range slices.Collect(sc.each) {
		l.retire()
	}
	clear(sc.links)
	sc.held = nil
}

// instructions are what the servers say about themselves.
func (sc *scope) instructions() string {
	servers := make([]catalog.Server, len(sc.gw.servers))
	texts := make([]string, len(sc.gw.servers))
	for i, s := range sc.gw.servers {
		servers[i], texts[i] = s.Catalog, s.about
	}
	return catalog.Instructions(sc.gw.opts.Names, servers, texts)
}

// aboutOf reads the instructions of a raw InitializeResult or DiscoverResult.
func aboutOf(result []byte) string {
	text, _ := jsonrpc.Unquote(jsonrpc.Find(result, "instructions").Of(result))
	return text
}
