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
	token   []byte // raw progress token of the server; nil: no progress wanted
	shown   string // raw id and progress token that the client sees: a whole number, as some read no other
	session *Session
	during  *exchange // the client's request that it belongs to; nil: none
}

// asksMost is how many questions of one server may wait for answers.
const asksMost = 100

// askID makes the raw id of a request to a client.
func (g *Gateway) askID() string {
	g.lastAsk++
	return strconv.FormatUint(g.lastAsk, 10)
}

// asked returns the open question to the client with this raw id or progress token, nil if there is none.
func (s *Session) asked(id []byte) *ask {
	for _, a := range s.gw.asks {
		if a.session == s && isShown(a.shown, id) {
			return a
		}
	}
	return nil
}

// isShown reports whether a client's raw id is the one that it was shown. Some clients return the number as text.
func isShown(shown string, id []byte) bool {
	if text := jsonrpc.IntegerText(id); text != nil {
		id = text
	}
	return jsonrpc.SameID([]byte(shown), id)
}

// asks are the open questions of the link's server, the oldest first.
func (l *Link) asks() (all []*ask) {
	for _, a := range l.gw.asks {
		if a.link == l {
			all = append(all, a)
		}
	}
	return all
}

// settle forgets an ask that is answered or cancelled.
func (a *ask) settle() {
	g := a.link.gw
	g.asks = slices.DeleteFunc(g.asks, func(one *ask) bool { return one == a })
}

// stream is where the ask is sent: to the response of its request while that is in flight, otherwise to the general
// stream.
func (a *ask) stream() Stream {
	if a.during != nil && a.link.calls[a.during.num] == a.during {
		return a.during.stream
	}
	return a.session.general
}

// reply takes a client's answer to a server's request.
func (s *Session) reply(line []byte) {
	env := &s.gw.client
	if s.roots.shown != "" && isShown(s.roots.shown, env.ID.Of(line)) {
		s.place(bytes.Clone(env.Result.Of(line)))
		return
	}
	a := s.asked(env.ID.Of(line))
	if a == nil {
		return // cancelled meanwhile, or of a dead process
	}
	a.settle()
	s.gw.post(a.link, jsonrpc.Replace(nil, line, env.ID, a.id))
}

// unreadable answers the server with an error if id is that of one of its questions.
func (s *Session) unreadable(id []byte, why string) bool {
	a := s.asked(id)
	if a != nil {
		a.settle()
		s.gw.post(a.link, jsonrpc.AppendError(nil, a.id, jsonrpc.InternalError, why, nil))
	}
	return a != nil
}

// hasLeft is what servers are told of a client that is gone, or has closed its end.
const hasLeft = "the client has left"

// dropAsks forgets the session's open questions and answers them with errors.
func (s *Session) dropAsks() {
	for _, a := range slices.Clone(s.gw.asks) {
		if a.session == s {
			s.unreadable([]byte(a.shown), hasLeft)
		}
	}
}

// stateOwners are the processes that have issued a requestState, the latest last: with several instances only that one can continue.
type stateOwners []stateOwner

type stateOwner struct {
	state uint64 // its digest
	link  *Link
}

// statesMost is how many states are remembered.
const statesMost = 4096

func (o *stateOwners) note(state []byte, l *Link) {
	if state == nil || len(l.scope.links[l.server]) < 2 {
		return
	}
	if *o = append(*o, stateOwner{jsonrpc.HashID(state), l}); len(*o) > statesMost {
		*o = (*o)[1:]
	}
}

// owner returns the link that issued a request's state, nil if it is not known.
func (o stateOwners) owner(state []byte, s *server) *Link {
	if state == nil || len(o) == 0 {
		return nil
	}
	digest := jsonrpc.HashID(state)
	for _, one := range slices.Backward(o) {
		if one.state == digest && one.link.server == s && one.link.phase == ready {
			return one.link
		}
	}
	return nil
}

// legacyOnly are methods that the modern era does not have.
var legacyOnly = []mcp.Method{mcp.Initialize, mcp.Ping, mcp.SetLevel, mcp.Subscribe, mcp.Unsubscribe}
