package gateway

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// ask is a request of a server that a client has not answered yet.
type ask struct {
	link    *Link
	id      []byte // raw, the server's
	token   []byte // raw progress token, the server's; nil: it wants no progress
	shown   string // raw, under which the client knows it, and reports progress
	session *Session
	during  *exchange // the client's request that it belongs to; nil: none
}

// asksMost is how many questions of one server may wait for answers: a server that asks without end is told so.
const asksMost = 100

// newAsk notes that s is to be asked what l wants to know.
func (g *Gateway) newAsk(l *Link, id []byte, s *Session, during *exchange) *ask {
	g.lastAsk++
	a := &ask{
		link: l, id: bytes.Clone(id), session: s, during: during,
		shown: `"~g` + strconv.FormatUint(g.lastAsk, 10) + `"`,
	}
	if s.asks == nil {
		s.asks = map[string]*ask{}
	}
	s.asks[a.shown] = a
	l.asks = append(l.asks, a)
	return a
}

// settle forgets an ask: it was answered, or is not going to be.
func (a *ask) settle() {
	delete(a.session.asks, a.shown)
	a.link.asks = slices.DeleteFunc(a.link.asks, func(one *ask) bool { return one == a })
}

// stream is where the client hears of the ask: with the request that it belongs to, as long as that is in flight.
func (a *ask) stream() Stream {
	if a.during != nil && a.link.calls[a.during.num] == a.during {
		return a.during.stream
	}
	return a.session.general
}

// reply takes a client's answer to a server's request.
func (s *Session) reply(line []byte) {
	env := &s.gw.client
	a := s.asks[string(env.ID.Of(line))]
	if a == nil {
		return // withdrawn meanwhile, or of a process that is no more
	}
	a.settle()
	s.gw.post(a.link, changed(nil, line, change{env.ID, a.id}))
}

// unreadable tells the server that its client's answer came to nothing, if id is that of one.
func (s *Session) unreadable(id []byte, why string) bool {
	a := s.asks[string(id)]
	if a != nil {
		a.settle()
		s.gw.post(a.link, jsonrpc.AppendError(nil, a.id, jsonrpc.InternalError, why, nil))
	}
	return a != nil
}

// dropAsks forgets what a session was asked; whoever asked is told.
func (s *Session) dropAsks() {
	for _, shown := range sortedKeys(s.asks) {
		s.unreadable([]byte(shown), "the client has left")
	}
}

// withdrawAsks tells clients that nobody waits for their answers any more.
func (l *Link) withdrawAsks(why string) {
	asks := l.asks
	l.asks = nil
	for _, a := range asks {
		delete(a.session.asks, a.shown)
		a.stream().Send(mcp.CancelledLine([]byte(a.shown), why))
	}
}

// progress hands a client's progress on to the server that asked it for something.
func (s *Session) progress(line []byte) {
	env := &s.gw.client
	if a := s.asks[string(env.ProgressToken.Of(line))]; a != nil && a.token != nil {
		s.gw.post(a.link, changed(nil, line, change{env.ProgressToken, a.token}))
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
func (o *stateOwners) owner(state []byte, s *server) *Link {
	if state == nil || len(o.of) == 0 {
		return nil
	}
	l := o.of[jsonrpc.HashID(state)]
	if l == nil || l.server != s || l.phase != ready {
		return nil
	}
	return l
}

// forget lets go of a link that is no more.
func (o *stateOwners) forget(l *Link) {
	o.order = slices.DeleteFunc(o.order, func(key uint64) bool {
		if o.of[key] != l {
			return false
		}
		delete(o.of, key)
		return true
	})
}

// all the methods of the legacy era that the modern one has no more.
func legacyOnly(m mcp.Method) bool {
	switch m {
	case mcp.Initialize, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe:
		return true
	}
	return false
}

// modernOnly are the methods that the legacy era has not had.
func modernOnly(m mcp.Method) bool { return m == mcp.Discover || m == mcp.Listen }
