package gateway

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// scope is a set of links: of one legacy client, or of all modern ones. Its clients see the merged lists of its servers.
type scope struct {
	gw    *Gateway
	era   mcp.Era
	owner *Session // nil: many use it
	pool  pooled   // of those that many clients of the legacy era use
	links map[*server][]*Link

	byView    map[string]*showing // what is seen, by the name of the view; an owner has one
	presumes  bool                // of a session that goes on from a record, see [scope.noLongerPresume]
	held      []held              // requests waiting for the servers' lists
	changedAt time.Time           // when clients are notified of changes; zero: none
	listens   []*listen
}

// held is a request that needs more knowledge of the servers.
type held struct {
	exchange *exchange
	enough   func() bool
	again    func()
}

func newScope(g *Gateway, era mcp.Era, owner *Session) *scope {
	return &scope{gw: g, era: era, owner: owner, links: map[*server][]*Link{}, byView: map[string]*showing{}}
}

// of is the scope that has the links of s: what its owner shares with others, if s is shared.
func (sc *scope) of(s *server) *scope {
	if sc.owner != nil && s.Shared {
		return sc.owner.pool
	}
	return sc
}

// link returns the link for a call to s, opened if needed; nil if s does not speak the scope's era.
func (sc *scope) link(s *server) *Link {
	sc = sc.of(s)
	if sc.era == mcp.Modern && s.modern == refuses {
		return nil
	}
	sc.open(s)
	if len(sc.links[s]) == 0 {
		return nil
	}
	return slices.MinFunc(sc.links[s], func(a, b *Link) int {
		return cmp.Or(cmp.Compare(ranks[a.phase], ranks[b.phase]), cmp.Compare(a.load(), b.load()))
	})
}

// all returns the links of s that the scope has, open or not.
func (sc *scope) all(s *server) []*Link {
	return sc.of(s).links[s]
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
		l := newLink(sc, s, sc.needs(s) || s.bridged)
		sc.links[s] = append(sc.links[s], l)
		l.greet()
	}
}

// openAll opens the links of every usable server of a view that is not started on demand.
func (sc *scope) openAll(view string) {
	sc.showing(view).opened = true
	selection := sc.gw.viewOf(view).selection
	for _, s := range sc.gw.servers {
		if selection.Has(s.Catalog.Name) && (sc.era != mcp.Modern || s.modern != refuses) {
			sc.of(s).open(s)
		}
	}
}

// probeEras finds which servers of a view are modern; those known not to be are not started for that.
func (sc *scope) probeEras(view string) {
	selection := sc.gw.viewOf(view).selection
	for _, s := range sc.gw.servers {
		if selection.Has(s.Catalog.Name) && s.modern != refuses && !s.bridged {
			sc.open(s)
		}
	}
}

// serversChanged adapts the scope to another configuration. Requests waiting for a changed server wait for its
// successor.
func (sc *scope) serversChanged(gone []*server) {
	var homeless []*exchange
	if sc.owner != nil {
		for _, s := range sc.gw.servers {
			if !sc.owner.has(s) {
				gone = append(slices.Clip(gone), s)
			}
		}
		sc.owner.dropHidden()
	}
	for _, s := range gone {
		links := sc.links[s]
		delete(sc.links, s)
		for _, l := range links {
			homeless = append(homeless, l.waiting...)
			l.waiting = nil
			l.retire()
		}
	}
	for view, sh := range sc.showings {
		switch {
		case sh.opened:
			sc.openAll(view)
		case sh.probed:
			sc.probeEras(view)
		}
	}
	for _, l := range sc.listens {
		l.dropHidden()
	}
	if sc.owner != nil {
		sc.owner.keepSubscriptions(gone)
	}
	sc.changed()
	for _, e := range homeless {
		sc.resend(e)
	}
}

// resend moves an unsent request to its server's successor.
func (sc *scope) resend(e *exchange) {
	for _, s := range sc.gw.servers {
		if s.Catalog.Name != e.link.Name() || !e.session.has(s) {
			continue
		}
		if l := sc.link(s); l != nil {
			l.give(e)
			return
		}
	}
	e.refuse(jsonrpc.InternalError, "the server was taken out of the configuration before it was ready")
}

// each yields the scope's links in configuration order.
func (sc *scope) each(yield func(*Link) bool) {
	for _, s := range sc.gw.servers {
		for _, l := range sc.links[s] {
			if !yield(l) {
				return
			}
		}
	}
}

// tell sends a notification of a client to the servers that are ready.
func (sc *scope) tell(line []byte) {
	for l := range sc.each {
		if l.phase == ready {
			sc.gw.post(l, bytes.Clone(line))
		}
	}
}

// lists returns the lists of s in this scope, or those last shown to a client with the same capabilities; nil if
// unknown.
func (sc *scope) lists(s *server) *catalog.Lists {
	lists := sc.shownLists(s)
	if lists == nil && sc.presumes {
		return s.known.latest()
	}
	return lists
}

// shownLists is lists without what is presumed.
func (sc *scope) shownLists(s *server) *catalog.Lists {
	sc = sc.of(s)
	for _, l := range sc.links[s] {
		if l.listed() {
			return l.lists.all
		}
	}
	return sc.knownLists(s)
}

// knownLists are the lists of s that a client with the same capabilities was shown last; nil: none was.
func (sc *scope) knownLists(s *server) *catalog.Lists {
	sc = sc.of(s)
	return s.known.of(sc.key())
}

// key identifies the client capabilities declared to the scope's servers.
func (sc *scope) key() string {
	switch {
	case sc.era == mcp.Modern:
		return modernKey(sc.gw.can)
	case sc.owner != nil:
		return sc.owner.key
	}
	return sc.pool.key
}

// complete reports whether each of some servers that is in a view has shown these lists, or is not waited for.
func (sc *scope) complete(view string, kinds []mcp.List, servers []*server) bool {
	selection := sc.gw.viewOf(view).selection
	for _, s := range servers {
		remembered := sc.knownLists(s) != nil || sc.presumes && s.known.latest() != nil // they answer until it was asked
		if !selection.Has(s.Catalog.Name) || remembered {
			continue
		}
		links := sc.all(s)
		if slices.ContainsFunc(links, func(l *Link) bool { return l.listed() && !l.hopeful(kinds) }) {
			continue
		}
		if slices.ContainsFunc(links, func(l *Link) bool { return l.hopeful(kinds) }) {
			return false
		}
	}
	return true
}

// current is what the scope's clients of a view see.
func (sc *scope) current(view string) *catalog.View {
	sh := sc.showing(view)
	if sh.stale || sh.view == nil {
		servers := make([]catalog.Server, len(sc.gw.servers))
		lists := make([]*catalog.Lists, len(sc.gw.servers))
		for i, s := range sc.gw.servers {
			servers[i] = s.Catalog
			if !sc.excluded(s) {
				lists[i] = sc.lists(s)
			}
		}
		was := sh.view
		sh.view, sh.stale = sc.gw.catalog.Merge(servers, lists, sc.gw.viewOf(view).selection), false
		if sh.view != was {
			sc.gw.tellHidden(sh.view)
		}
		if sc == sc.gw.modern {
			sc.gw.current.Store(view, sh.view)
		}
	}
	return sh.view
}

// excluded reports whether the scope's clients cannot use s: it does not speak their era.
func (sc *scope) excluded(s *server) bool {
	if sc.era == mcp.Modern {
		return s.modern == refuses
	}
	return s.legacy == refuses
}

// changed records that some server's lists have changed.
func (sc *scope) changed() {
	sc.outdated()
	if sc.changedAt.IsZero() {
		sc.changedAt = sc.gw.now.Add(changedAfter)
		sc.gw.at(sc.changedAt)
	}
	sc.release()
	for s := range sc.members {
		s.own.changed()
	}
}

// whenListed runs again when the lists that a request needs are known of every server that the client sees, and is worth waiting for.
func (sc *scope) whenListed(e *exchange, again func()) {
	view := e.session.view
	if !sc.showing(view).opened {
		sc.openAll(view)
	}
	kinds := listsFor(e.method)
	sc.hold(e, func() bool { return sc.complete(view, kinds, sc.gw.servers) }, again)
}

// whenStarted runs again when the servers that start have shown the lists that a request needs: what is remembered of them may be older.
func (sc *scope) whenStarted(e *exchange, again func()) {
	kinds := listsFor(e.method)
	sc.hold(e, func() bool {
		for _, s := range e.session.servers() {
			due := slices.DeleteFunc(slices.Clone(kinds), func(kind mcp.List) bool { return s.late[kind] })
			if slices.ContainsFunc(sc.all(s), func(l *Link) bool { return l.hopeful(due) }) {
				return false
			}
		}
		return true
	}, again)
}

// lookAgain runs again when the servers have shown once more what a request is about: not all of them tell of changes.
func (sc *scope) lookAgain(e *exchange, again func()) {
	kinds, until := listsFor(e.method), sc.gw.now.Add(lookFor)
	under := func(look func(*listing, mcp.List) bool) (any bool) {
		for _, s := range e.session.servers() {
			for _, l := range sc.all(s) {
				for _, kind := range kinds {
					any = look(&l.lists, kind) || any
				}
			}
		}
		return any
	}
	if !under((*listing).lookAgain) {
		again()
		return
	}
	sc.gw.at(until)
	sc.hold(e, func() bool { return !under((*listing).underWay) }, again)
}

// allLists are all lists, toolsOnly and the others those that requests about tools, prompts or resources need.
var (
	allLists      = []mcp.List{mcp.Tools, mcp.Prompts, mcp.Resources, mcp.Templates}
	toolsOnly     = []mcp.List{mcp.Tools}
	promptsOnly   = []mcp.List{mcp.Prompts}
	resourcesOnly = []mcp.List{mcp.Resources, mcp.Templates}
)

// listsFor are the lists that show which server a request is for, or that it asks for.
func listsFor(m mcp.Method) []mcp.List {
	switch m {
	case mcp.ToolsList, mcp.ToolsCall:
		return toolsOnly
	case mcp.PromptsList, mcp.PromptsGet:
		return promptsOnly
	case mcp.ResourcesList, mcp.TemplatesList, mcp.ResourcesRead, mcp.Subscribe, mcp.Unsubscribe:
		return resourcesOnly
	}
	return allLists
}

// hold runs again now if enough is known, or once it is.
func (sc *scope) hold(e *exchange, enough func() bool, again func()) {
	if enough() {
		again()
		return
	}
	sc.held = append(sc.held, held{e, enough, again})
}

// release continues held requests that need not wait any longer.
func (sc *scope) release() {
	if len(sc.held) == 0 {
		return
	}
	waiting := sc.held
	sc.held = nil
	for _, h := range waiting {
		switch e := h.exchange; {
		case e.session.calls[e.id] != e: // cancelled, or its client has left
		case h.enough():
			h.again()
		default:
			sc.held = append(sc.held, h)
		}
	}
}

// releaseAll does so for those of its members, too.
func (sc *scope) releaseAll() {
	sc.release()
	for s := range sc.members {
		s.own.release()
	}
}

// tick handles everything that is due.
func (sc *scope) tick() {
	g := sc.gw
	for l := range sc.each {
		l.tick()
	}
	if g.opts.Plain && sc.owner == nil && sc.era == mcp.Legacy {
		sc.placeAll()
	}
	sc.release()
	if g.isDue(&sc.changedAt) {
		sc.tellChanges()
	}
}

// seen is, for each list, the view that a client has read.
type seen [mcp.Lists]*catalog.View

// differs reports whether a list that was read has changed, and marks it as reported.
func (s *seen) differs(l mcp.List, now *catalog.View) bool {
	was := s[l]
	if was == nil || was == now {
		return false
	}
	s[l] = now
	return !was.Same(l, now)
}

// tellChanges notifies the scope's clients of changes in lists that they have read.
func (sc *scope) tellChanges() {
	if sc.owner != nil {
		view := sc.current(sc.owner.view)
		was := sc.owner.seen
		announce(sc.owner.general, nil, func(l mcp.List) bool { return listHasChanged(sc.owner, l, view) })
		if sc.owner.seen != was {
			remember(sc.owner)
		}
	}
	for _, l := range slices.Clone(sc.listens) {
		view := sc.current(l.exchange.session.view)
		announce(l.exchange.stream, []byte(l.exchange.id), func(kind mcp.List) bool {
			return l.seen.differs(kind, view) && l.lists[kind.Changed()]
		})
		l.exchange.session.listenForResources(l)
	}
}

// announce sends a client the notifications of changed lists, each once: templates are announced with the resources. id is that of the
// request it listens with, raw; nil: it need not listen.
func announce(to Stream, id []byte, changed func(mcp.List) bool) {
	told := map[mcp.Method]bool{}
	for l := range mcp.Lists {
		if changed(l) && !told[l.Changed()] {
			told[l.Changed()] = true
			to.Send(mcp.ChangedLine(l, id))
		}
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

// instructions are what the client's servers say about themselves, as a raw member with its comma; nil: they say nothing.
func (s *Session) instructions() []byte {
	var servers []catalog.Server
	var texts []string
	for _, one := range s.servers() {
		servers, texts = append(servers, one.Catalog), append(texts, one.about)
	}
	text := catalog.Instructions(s.gw.opts.Names, servers, texts)
	if text == "" {
		return nil
	}
	return jsonrpc.AppendQuoted([]byte(`,"instructions":`), text)
}
