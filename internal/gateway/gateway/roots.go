package gateway

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// A server that several clients share may ask for roots. All clients of a process have the same roots: once the
// server has asked, each client is asked for its own, and clients with other roots get another process. A client's
// requests wait until its process is known.

// rootsList is the method by which a server asks for roots.
const rootsList = "roots/list"

// rootsFor is how long to wait for a client's answer to roots/list. A client that does not answer gets a process of
// its own.
const rootsFor = 5 * time.Second

// rooted is what is known of a session's roots.
type rooted struct {
	key   string    // "" until they are known
	by    time.Time // deadline for the client's answer; zero: it was not asked
	shown string    // id of the open roots/list request; "": none
}

// hasRoots reports whether a client with these raw initialize parameters can be asked for roots.
func hasRoots(params []byte) bool { return jsonrpc.FindPath(params, "capabilities", "roots").Present() }

// rootsAsked handles a process's roots/list request.
func (sc *scope) rootsAsked(l *Link, id []byte) {
	if !hasRoots(sc.pool.params) {
		sc.gw.post(l, jsonrpc.AppendError(nil, id, jsonrpc.MethodNotFound, "Method not found", nil))
		return
	}
	l.server.rootsWanted = true
	if sc.pool.roots != nil {
		sc.gw.post(l, jsonrpc.AppendResult(nil, id, sc.pool.roots))
		return
	}
	sc.pool.rootAsks = append(sc.pool.rootAsks, &ask{link: l, id: bytes.Clone(id)})
	for s := range sc.members {
		s.askRoots()
	}
}

// unplaced reports whether the client's process is not known yet.
func (s *Session) unplaced() bool {
	return s.gw.opts.Plain && s.own != nil && s.gw.servers[0].rootsWanted && s.roots.key == "" && hasRoots(s.initParams)
}

// askRoots asks the client for its roots, unless a request is open already.
func (s *Session) askRoots() {
	if s.roots.shown != "" {
		return
	}
	g := s.gw
	s.roots.shown = g.askID()
	s.roots.by = g.now.Add(rootsFor)
	g.at(s.roots.by)
	s.general.Send(jsonrpc.AppendRequest(nil, []byte(s.roots.shown), rootsList, nil))
}

// tellRoots handles the client's answer, whose envelope is env; false: line is another message.
func (s *Session) tellRoots(env *jsonrpc.Envelope, line []byte) bool {
	id := env.ID.Of(line)
	if text := jsonrpc.IntegerText(id); text != nil {
		id = text
	}
	if s.roots.shown == "" || !jsonrpc.SameID([]byte(s.roots.shown), id) {
		return false
	}
	s.place(bytes.Clone(env.Result.Of(line)))
	return true
}

// place moves the client to the process with these roots; nil: they are not known.
func (s *Session) place(roots []byte) {
	s.roots = rooted{key: "of session " + strconv.FormatUint(s.gw.number(), 10)}
	if jsonrpc.Find(roots, "roots").Present() {
		sum := mcp.EntryDigest(roots)
		s.roots.key = hex.EncodeToString(sum[:8])
	} else {
		roots = []byte(`{"roots":[]}`)
	}
	switch was := s.pool; {
	case was.pool.rootsKey == s.roots.key:
	case was.pool.rootsKey == "" && s.gw.rootedPool(s) == nil, was.only() == s && s.gw.rootedPool(s) == nil:
		told := was.pool.rootsKey != ""
		was.pool.rootsKey, was.pool.roots = s.roots.key, roots
		if told { // the client has other roots now
			for l := range was.each {
				if l.phase == ready {
					s.gw.post(l, jsonrpc.AppendNotification(nil, rootsChanged, nil))
				}
			}
		}
		for _, a := range was.pool.rootAsks {
			s.gw.post(a.link, jsonrpc.AppendResult(nil, a.id, roots))
		}
		was.pool.rootAsks = nil
	default:
		next := s.gw.rootedPool(s)
		if next == nil {
			next = s.gw.newPool(s)
			next.pool.rootsKey, next.pool.roots = s.roots.key, roots
		}
		s.move(next)
	}
	s.own.release()
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
		if l == nil {
			continue
		}
		sub.link, sub.moved = l, l.phase != ready
		if !sub.moved {
			l.askAbout(mcp.Subscribe, sub.uri, func(_, _ []byte) {})
		}
	}
}

// tickRoots stops waiting for a client that has not answered in time.
func (s *Session) tickRoots() {
	switch {
	case s.roots.by.IsZero():
	case s.gw.now.Before(s.roots.by):
		s.gw.at(s.roots.by)
	default:
		s.place(nil)
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
			s.roots.shown = "" // the answer to an earlier request would be outdated
			s.askRoots()
		}
	case s.pool.only() == s:
		for l := range s.pool.each {
			if l.phase == ready {
				s.gw.post(l, bytes.Clone(line))
			}
		}
	}
}
