package gateway

import (
	"slices"

	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// View is a part of all servers and their tools. A client that is given one sees nothing else.
type View struct {
	Name string
	// Servers are those that it has, each with what is shown of it besides what the server's own settings say.
	Servers map[string]catalog.Filter
	NoTools bool // without the tools of the gateway's own
}

// view is a configured View.
type view struct {
	selection *catalog.Selection // nil: everything
	noTools   bool
}

// viewOf returns the view of a name; "" is everything. A name that is not configured, any more, shows nothing.
func (g *Gateway) viewOf(name string) view {
	if name == "" {
		return view{noTools: g.opts.NoTools}
	}
	v, known := g.views[name]
	if !known {
		return view{selection: catalog.Select(nil), noTools: true}
	}
	return v
}

// setViews applies the configured views.
func (g *Gateway) setViews(views []View) {
	g.views = map[string]view{}
	for _, v := range views {
		g.views[v.Name] = view{selection: catalog.Select(v.Servers), noTools: v.NoTools || g.opts.NoTools}
	}
	for name := range g.modern.byView {
		if _, known := g.views[name]; !known && name != "" { // a client that is left makes it again, and sees nothing
			delete(g.modern.byView, name)
		}
	}
	g.current.Range(func(name, _ any) bool {
		if _, known := g.views[name.(string)]; !known && name != "" {
			g.current.Delete(name)
		}
		return true
	})
}

// has reports whether a client sees anything of the server.
func (s *Session) has(one *server) bool {
	return s.gw.viewOf(s.view).selection.Has(one.Catalog.Name)
}

// servers are those that the client sees something of, in configuration order.
func (s *Session) servers() []*server {
	selection := s.gw.viewOf(s.view).selection
	return slices.DeleteFunc(slices.Clone(s.gw.servers), func(one *server) bool { return !selection.Has(one.Catalog.Name) })
}

// shown is what the client sees.
func (s *Session) shown() *catalog.View { return s.scope().current(s.view) }

// hasView reports whether the client sees a part only. Of nil, who is the user of this machine: no.
func hasView(s *Session) bool { return s != nil && s.view != "" }

// isKnownTo reports whether a client may know of the processes. Who has a view knows its own, and those that many use.
func (sc *scope) isKnownTo(s *Session) bool {
	owner := sc.owner
	return !hasView(s) || owner == nil || owner.principal == s.principal && owner.view == s.view
}

// toldTo is the status as a client is told it: without the servers that it does not see.
func (st ServerStatus) toldTo(s *Session) ServerStatus {
	names := namesOf(s.servers())
	st.Hidden = slices.DeleteFunc(st.Hidden, func(h HiddenResource) bool { return !slices.Contains(names, h.Of) })
	return st
}

// dropHidden ends what the client has of servers that it does not see any more.
func (s *Session) dropHidden() {
	for _, sub := range slices.Clone(s.subs) {
		if !s.has(sub.link.server) {
			s.subs = slices.DeleteFunc(s.subs, func(one *subscription) bool { return one == sub })
			s.gw.unsubscribe(sub)
		}
	}
}

// dropHidden ends what is listened for at servers that the client does not see any more.
func (l *listen) dropHidden() {
	for _, one := range slices.Clone(l.legs) {
		if !l.exchange.session.has(one.link.server) {
			l.legs = slices.DeleteFunc(l.legs, func(other *exchange) bool { return other == one })
			one.withdraw("the client does not see the server any more")
		}
	}
}

// showing is what the clients of one view see in a scope.
type showing struct {
	view   *catalog.View
	stale  bool
	opened bool // all its servers are needed
	probed bool // the eras of its servers were asked for

	listed [mcp.Lists]bool // a client of the modern era was given the list: each message may be a session of its own there
}

// showing returns that of a view.
func (sc *scope) showing(view string) *showing {
	sh := sc.byView[view]
	if sh == nil {
		sh = &showing{stale: true}
		sc.byView[view] = sh
	}
	return sh
}

// showings yields all of them with the names of their views.
func (sc *scope) showings(yield func(string, *showing) bool) {
	for _, name := range sortedKeys(sc.byView) {
		if !yield(name, sc.byView[name]) {
			return
		}
	}
}

// outdated says that what clients see has to be put together anew.
func (sc *scope) outdated() {
	for _, sh := range sc.showings {
		sh.stale = true
	}
}

// needs reports whether a server is to be used by the scope's clients, not only tested.
func (sc *scope) needs(s *server) bool {
	for name, sh := range sc.showings {
		if sh.opened && sc.gw.viewOf(name).selection.Has(s.Catalog.Name) {
			return true
		}
	}
	return false
}
