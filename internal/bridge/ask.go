package bridge

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// A legacy server does not say which call its question belongs to; a modern client must be asked within a call. So a
// question belongs to the one call that runs and can be asked it. While several run it waits until one is left. A server
// that has asked once gets such calls one after the other from then on, so that this does not happen again; servers that
// never ask are not slowed down. A question that comes while nothing runs waits for the next call. All this is so for one
// client; for many see crowd.go.

// question is a request of the server to the client.
type question struct {
	ID     []byte // raw, the server's
	Method string
	Params []byte // raw, nil for none
	Key    string // under which the client was shown it
	Need   abilities
	Until  time.Time // while it belongs to no call

	Came     time.Time // of many clients' server, see crowd.go
	Suspects []string  // calls that may have asked it, by their raw ids at the server
	Doubt    bool      // the call it was given to may be another one of the same client than the one that has asked
}

// turn is a call that waits for its turn.
type turn struct {
	ID, Line []byte
	Came     time.Time
	Target   string // what it calls
}

// takeTurn lets a call that may be asked something run, or wait while another one does.
func (s *modernSide) takeTurn(id, line []byte) {
	target := s.target(line)
	if s.busy(target) || len(s.Queue) > 0 && (!s.Shared || s.Known[target]) {
		if len(s.Queue) >= queueMost {
			s.refuse(id, jsonrpc.InternalError, "too many requests are waiting for their turn")
			return
		}
		switch t := s.meant(line, s.now); {
		case t != nil:
			t.Expires = s.now.Add(answerFor) // its answer has come in time
		case s.env.RequestState.Present():
			s.refuse(id, jsonrpc.InvalidParams, expired)
			return
		}
		s.Queue = append(s.Queue, turn{ID: bytes.Clone(id), Line: bytes.Clone(line), Came: s.now, Target: target})
		return
	}
	s.run(line, s.now)
}

// run lets a call run, or go on, that came at some time; s.env was scanned from line.
func (s *modernSide) run(line []byte, came time.Time) {
	meta := s.env.Meta.Of(line)
	id := s.env.ID.Of(line)
	if s.env.RequestState.Present() {
		s.resume(id, line, meta, came)
		return
	}
	can := abilitiesOf(member(meta, mcp.MetaClientCapabilities))
	s.forward(mcp.Lookup(s.env.Method.Of(line)), id, line, meta, true, can)
}

// proceed lets waiting calls run, and waiting questions find their call, after one has ended.
func (s *modernSide) proceed() {
	s.assign()
	for len(s.Queue) > 0 && !s.busy(s.Queue[0].Target) {
		next := s.Queue[0]
		s.Queue = s.Queue[1:]
		if s.env.Scan(next.Line) == nil {
			s.run(next.Line, next.Came)
		}
	}
	s.verbosity()
}

// busy reports whether a call has to wait for its turn.
func (s *modernSide) busy(target string) bool {
	if s.Shared {
		return !s.headStart(target).IsZero()
	}
	return s.Asker && s.running(0) > 0
}

// running counts the calls that run, wait for nobody, and can be asked for all of can.
func (s *modernSide) running(can abilities) int {
	n := 0
	for _, t := range s.Calls {
		if t.Open && !t.parked() && can&^t.Can == 0 {
			n++
		}
	}
	return n
}

// questioned takes a request of the server.
func (s *modernSide) questioned(line []byte) {
	id, params := s.env.ID.Of(line), s.env.Params.Of(line)
	method, _ := jsonrpc.Unquote(s.env.Method.Of(line))
	if mcp.Lookup(s.env.Method.Of(line)) == mcp.Ping {
		s.toServer(jsonrpc.AppendResult(nil, id, nil))
		return
	}
	needed, known := need(method, params)
	if !known || needed&^s.Can != 0 {
		s.toServer(notFound(id))
		return
	}
	q := &question{ID: bytes.Clone(id), Method: method, Params: bytes.Clone(params), Need: needed, Until: s.now.Add(unclearFor)}
	if s.Shared {
		s.gather(q)
		return
	}
	if method != askRoots {
		s.Asker = true
	}
	s.Asks = append(s.Asks, q)
	s.assign()
	s.proceed()
}

// assign gives the questions that belong to no call to the call they can only belong to.
func (s *modernSide) assign() {
	if s.Shared {
		s.rule()
		return
	}
	for _, q := range slices.Clone(s.Asks) {
		t, hopeless := s.owner(q)
		if t == nil && !hopeless {
			continue
		}
		s.Asks = slices.DeleteFunc(s.Asks, func(one *question) bool { return one == q })
		if hopeless {
			s.toServer(notFound(q.ID))
			continue
		}
		s.put(t, q)
	}
}

// owner returns the call that a question belongs to, nil if that cannot be told. A server may ask several things at
// once: if no call runs, and one is parked, it is that one. It is hopeless if calls run, and the client can be asked in
// none of them.
func (s *modernSide) owner(q *question) (t *task, hopeless bool) {
	var runs, waits []*task
	others := 0
	for _, t := range s.Calls {
		switch {
		case !mayAsk(t.Method) || t.Afresh || t.Finished != nil:
		case !t.Open || q.Need&^t.Can != 0:
			others++
		case t.parked():
			waits = append(waits, t)
		default:
			runs = append(runs, t)
		}
	}
	switch {
	case len(runs) == 1:
		return runs[0], false
	case len(runs) == 0 && len(waits) == 1:
		return waits[0], false
	}
	return nil, len(runs)+len(waits) == 0 && others > 0
}

// decline answers a question that the client is not asked.
func (s *modernSide) decline(q *question, why string) {
	s.toServer(jsonrpc.AppendError(nil, q.ID, jsonrpc.InternalError, why, nil))
}

// withdrew forgets a question that the server does not want to be answered any more.
func (s *modernSide) withdrew(id []byte) {
	same := func(q *question) bool { return jsonrpc.SameID(q.ID, id) }
	s.Asks = slices.DeleteFunc(s.Asks, same)
	for _, t := range s.Calls {
		t.Asks, t.Next = slices.DeleteFunc(t.Asks, same), slices.DeleteFunc(t.Next, same)
	}
}

// expireAsks refuses what has belonged to no call for too long.
func (s *modernSide) expireAsks() {
	for _, q := range slices.Clone(s.Asks) {
		if s.due(q.Until) {
			s.Asks = slices.DeleteFunc(s.Asks, func(one *question) bool { return one == q })
			s.toServer(jsonrpc.AppendError(nil, q.ID, jsonrpc.MethodNotFound,
				"the client cannot be asked: it is not clear which of its calls this is for", nil))
		}
	}
}
