package gateway

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// pooled is the part of a scope whose processes several clients of the legacy era share. There is one such scope for
// all of them; with [Options.Plain], where clients see the one server directly, there is one for each set of client
// capabilities, because a process is given its clients' capabilities.
type pooled struct {
	params  []byte    // raw parameters of the initialize that its processes get
	key     string    // of them: see capabilityKey
	since   time.Time // when its last client left; zero: it has clients
	private bool      // for one client only: the server has features that cannot be separated by client

	roots    []byte // raw result of roots/list that its processes get; nil: none has asked
	rootsKey string // identifies the roots; "": none
}

// poolFor returns the shared scope for a client of the legacy era.
func (g *Gateway) poolFor(s *Session) *scope {
	if !g.opts.Plain {
		return g.pools[0]
	}
	i := slices.IndexFunc(g.pools, func(sc *scope) bool { return !sc.pool.private && sc.key() == s.key })
	if i < 0 {
		return g.newPool(s.initParams)
	}
	g.pools[i].pool.since = time.Time{}
	return g.pools[i]
}

// newPool makes a scope whose processes get these raw parameters of initialize.
func (g *Gateway) newPool(params []byte) *scope {
	sc := newScope(g, mcp.Legacy, nil)
	sc.pool.params, sc.pool.key = params, capabilityKey(params)
	g.pools = append(g.pools, sc)
	return sc
}

// members yields the clients that use a shared scope.
func (sc *scope) members(yield func(*Session) bool) {
	for s := range sc.gw.sessions.all {
		if s.pool == sc && !yield(s) {
			return
		}
	}
}

// only returns the one client of a shared scope; nil: it has none, or several.
func (sc *scope) only() (one *Session) {
	for s := range sc.members {
		if one != nil {
			return nil
		}
		one = s
	}
	return one
}

// dropIdlePools ends the processes of scopes that have had no clients for Options.PoolIdle.
func (g *Gateway) dropIdlePools() {
	g.pools = slices.DeleteFunc(g.pools, func(sc *scope) bool {
		due := sc.pool.since.Add(g.opts.PoolIdle)
		switch {
		case sc.pool.since.IsZero():
			return false
		case g.now.Before(due):
			g.at(due)
			return false
		}
		sc.closeAll()
		return true
	})
}

// greetPlainly answers initialize, or server/discover, with the server's own answer in the scope, once that is known.
func (sc *scope) greetPlainly(e *exchange) {
	server := sc.gw.servers[0]
	sc.showing("").opened = true // its processes are about to be used
	sc.link(server)
	greeted := func() bool {
		return !slices.ContainsFunc(sc.links[server], func(l *Link) bool { return l.phase == greeting && l.fails == 0 })
	}
	sc.hold(e, greeted, func() {
		switch l := sc.link(server); {
		case l == nil && sc.era == mcp.Modern:
			e.refuse(jsonrpc.MethodNotFound, "Method not found")
		case l == nil:
			e.refuse(jsonrpc.InternalError, "outlive is ending")
		case l.phase != ready:
			e.answerError(l.unusable())
		case sc.era == mcp.Legacy && !sc.pool.private && l.capability("tasks"): // tasks/list would show others' tasks
			if sc.pool.private = sc.only() != nil; !sc.pool.private {
				e.session.pool = sc.gw.newPool(e.session.initParams)
				e.session.pool.pool.private = true
				e.session.pool.greetPlainly(e)
				return
			}
			e.answer(l.result)
		default:
			e.answer(l.result)
		}
	})
}

// tellChanged passes a list_changed notification on to all clients that share the server.
func (l *Link) tellChanged(line []byte) {
	if l.scope.era == mcp.Modern {
		l.tellListener(line)
		return
	}
	for s := range l.scope.members {
		s.general.Send(line)
	}
}

// tellListener passes a server's message on a subscriptions/listen request on to its client, with the client's own
// id.
func (l *Link) tellListener(line []byte) {
	env := &l.gw.up
	meta := env.Meta.Of(line)
	at := jsonrpc.Find(meta, mcp.MetaSubscriptionID)
	if e := l.inFlight(at.Of(meta)); e != nil && e.session != nil && e.method == mcp.Listen {
		buf := jsonrpc.Replace(l.gw.buf[:0], line, at.In(env.Meta), []byte(e.id))
		e.stream.Send(buf)
		l.gw.rest(buf)
	}
}
