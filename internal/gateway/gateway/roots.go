package gateway

import (
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A server that several clients share may ask for roots. All clients of a process have the same roots: once the
// server has asked, each client is asked for its own, and clients with other roots get another process. A client's
// requests wait until its process is known. The question itself is about the client whose call asks it (attribution.go): the process
// becomes that client's, whoever answers first.

// rootsList is the method by which a server asks for roots.
const rootsList = "roots/list"

// rootsFor is how long to wait for a client's answer to roots/list. A client that does not answer gets a process of
// its own.
const rootsFor = 5 * time.Second

// rooted is what is known of a session's roots.
type rooted struct {
	key   string    // "" until they are known
	said  []byte    // raw result of roots/list; without roots if the client has not answered
	by    time.Time // deadline for the client's answer; zero: it was not asked
	shown string    // id of the open roots/list request; "": none
}

// hasRoots reports whether a client with these raw initialize parameters can be asked for roots.
func hasRoots(params []byte) bool { return jsonrpc.FindPath(params, "capabilities", "roots").Present() }

// rootsAsked asks the clients of a process that wants to know their roots; false: they have none, as it is told.
func (sc *scope) rootsAsked(l *Link, id []byte) bool {
	if !hasRoots(sc.pool.params) {
		sc.gw.post(l, jsonrpc.AppendError(nil, id, jsonrpc.MethodNotFound, "Method not found", nil))
		return false
	}
	l.server.rootsWanted = true
	for s := range sc.members {
		if sc.pool.rootsKey == "" {
			s.askRoots()
		}
	}
	return true
}

// unplaced reports whether the client's process is not known yet.
func (s *Session) unplaced() bool {
	return s.gw.opts.Plain && s.own != nil && s.gw.servers[0].rootsWanted && hasRoots(s.initParams) &&
		(s.roots.key == "" || s.pool.pool.rootsKey != s.roots.key)
}

// askRoots asks the client for its roots, unless it has said them or a request is open already.
func (s *Session) askRoots() {
	if s.roots.shown != "" || s.roots.key != "" {
		return
	}
	g := s.gw
	s.roots.shown = g.askID()
	s.roots.by = g.now.Add(rootsFor)
	g.at(s.roots.by)
	s.general.Send(jsonrpc.AppendRequest(nil, []byte(s.roots.shown), rootsList, nil))
}

// rootsSaid are roots as a client has said them; nil: it has not, and they are like nobody else's.
func (g *Gateway) rootsSaid(roots []byte) rooted {
	if !jsonrpc.Find(roots, "roots").Present() {
		return rooted{key: "of session " + strconv.FormatUint(g.number(), 10), said: []byte(`{"roots":[]}`)}
	}
	sum := mcp.EntryDigest(roots)
	return rooted{key: hex.EncodeToString(sum[:8]), said: roots}
}

// place takes the client's roots; nil: they are not known.
func (s *Session) place(roots []byte) {
	s.roots = s.gw.rootsSaid(roots)
	sc := s.pool
	for l := range sc.each {
		l.attribution.rule()
	}
	sc.placeAll()
}

// placeAll moves each client to the process with its roots. A process without any waits for its question to be answered, or becomes
// that of the first client.
func (sc *scope) placeAll() {
	for s := range sc.members {
		next := s.gw.rootedPool(s)
		switch {
		case s.roots.key == "":
			continue
		case next == sc:
		case next != nil:
			s.move(next)
		case sc.pool.rootsKey == "" && sc.asksRoots():
			continue
		case sc.pool.rootsKey == "" || sc.only() == s:
			sc.take(s)
		default:
			next = s.gw.newPool(s.initParams)
			next.take(s)
			s.move(next)
		}
		s.own.release()
	}
}

// asksRoots reports whether a question for roots is open.
func (sc *scope) asksRoots() bool {
	for l := range sc.each {
		if slices.ContainsFunc(l.attribution.open, func(q *question) bool { return q.roots }) {
			return true
		}
	}
	return false
}

// take makes the client's roots those of the scope's processes.
func (sc *scope) take(s *Session) {
	if sc.pool.rootsKey != "" { // the client has other roots now
		sc.tell(jsonrpc.AppendNotification(nil, rootsChanged, nil))
	}
	sc.pool.rootsKey, sc.pool.roots = s.roots.key, s.roots.said
}

// rootsChanged is the client's notification that its roots have changed.
const rootsChanged = "notifications/roots/list_changed"

// rootedPool returns the scope for clients with the same capabilities and roots as s; nil: there is none.
func (g *Gateway) rootedPool(s *Session) *scope {
	i := slices.IndexFunc(g.pools, func(sc *scope) bool { return sc.key() == s.key && sc.pool.rootsKey == s.roots.key })
	if i < 0 {
		return nil
	}
	return g.pools[i]
}

// move makes the client use another scope from now on. Its open requests are finished by the processes of the old
// one.
func (s *Session) move(to *scope) {
	subs, level, severity := s.subs, s.level, s.severity
	s.leaveShared()
	s.subs, s.level, s.severity = subs, level, severity
	s.pool, to.pool.since = to, time.Time{}
	l := to.link(s.gw.servers[0])
	to.levelAll()
	for _, sub := range s.subs {
		if l != nil {
			s.moveTo(l, sub)
		}
	}
}

// tellPool passes the client's notification on to the server that it shares, if it concerns roots, or if it is the
// only client.
func (s *Session) tellPool(line []byte) {
	env := &s.gw.client
	switch {
	case !s.gw.opts.Plain:
	case jsonrpc.EqualString(env.Method.Of(line), rootsChanged):
		if s.gw.servers[0].rootsWanted {
			s.roots = rooted{} // also the answer to an earlier request would be outdated
			s.askRoots()
		}
	case s.pool.only() == s:
		s.pool.tell(line)
	}
}
