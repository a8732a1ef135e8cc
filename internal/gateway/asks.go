package gateway

import (
	"bytes"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// ask is a request of a server that a client has not answered yet.
type ask struct {
	link    *Link
	id      []byte // raw, the server's
	session *Session
}

// newAsk makes up the id under which a client is asked: servers number theirs alike.
func (g *Gateway) newAsk(l *Link, id []byte, s *Session) []byte {
	g.lastAsk++
	shown := `"~g` + strconv.FormatUint(g.lastAsk, 10) + `"`
	g.asks[shown] = ask{l, bytes.Clone(id), s}
	return []byte(shown)
}

// reply takes a client's answer to a server's request.
func (s *Session) reply(line []byte) {
	env := &s.gw.client
	shown := string(env.ID.Of(line))
	a, ok := s.gw.asks[shown]
	if !ok || a.session != s {
		return // withdrawn meanwhile, or of a process that is no more
	}
	delete(s.gw.asks, shown)
	s.gw.post(a.link, changed(nil, line, change{env.ID, a.id}))
}

// dropAsks forgets what a session was asked; whoever asked is told.
func (s *Session) dropAsks() {
	for shown, a := range s.gw.asks {
		if a.session == s {
			delete(s.gw.asks, shown)
			s.gw.post(a.link, jsonrpc.AppendError(nil, a.id, jsonrpc.InternalError, "the client has left", nil))
		}
	}
}

// progress hands a client's progress on to the server that asked it for something.
func (s *Session) progress(line []byte) {
	for _, a := range s.gw.asks {
		if a.session == s {
			s.gw.post(a.link, bytes.Clone(line)) // a server ignores tokens that it has not given
		}
	}
}

// stateOwners remembers which process gave out a requestState: with several instances only that one can go on with it.
type stateOwners struct {
	of    map[uint64]*Link
	order []uint64
}

// statesMost is how many states are remembered.
const statesMost = 4096

func (o *stateOwners) note(state []byte, l *Link) {
	if state == nil || len(l.scope.links[l.server]) < 2 {
		return
	}
	if o.of == nil {
		o.of = map[uint64]*Link{}
	}
	key := jsonrpc.HashID(state)
	if _, known := o.of[key]; !known {
		o.order = append(o.order, key)
	}
	o.of[key] = l
	if len(o.order) > statesMost {
		delete(o.of, o.order[0])
		o.order = o.order[1:]
	}
}

// owner returns the link that gave a request's state out, nil if it is not known any more.
func (o *stateOwners) owner(env *jsonrpc.Envelope, line []byte, s *server) *Link {
	state := env.RequestState.Of(line)
	if state == nil {
		return nil
	}
	l := o.of[jsonrpc.HashID(state)]
	if l == nil || l.server != s || l.phase != ready {
		return nil
	}
	return l
}

// all the methods of the legacy era that the modern one has no more.
func legacyOnly(m mcp.Method) bool {
	switch m {
	case mcp.Initialize, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe:
		return true
	}
	return false
}
