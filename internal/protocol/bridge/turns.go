package bridge

import (
	"bytes"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// turn is a request that waits for its turn.
type turn struct {
	ID, Line []byte
	Came     time.Time
	Target   string // what it calls
	Round    bool   // it brings the answers of a call that is suspended at the server
}

// takeTurn runs a call that may be asked something, or makes it wait for another one.
func (s *modernSide) takeTurn(id, line []byte) {
	next := turn{Came: s.now, Target: s.Questions.target(line), Round: s.env.RequestState.Present()}
	if s.Questions.busy(next) || len(s.Queue) > 0 && s.Questions.inLine(next.Target) {
		if len(s.Queue) >= queueMost {
			s.refuse(id, jsonrpc.InternalError, "too many requests are waiting for their turn")
			return
		}
		switch c := s.meant(line, s.now); {
		case c != nil:
			c.Expires = s.now.Add(answerFor) // its answer has come in time
		case s.env.RequestState.Present():
			s.refuse(id, jsonrpc.InvalidParams, expired)
			return
		}
		next.ID, next.Line = bytes.Clone(id), bytes.Clone(line)
		s.Queue = slices.Insert(s.Queue, s.place(next), next)
		return
	}
	s.run(line, s.now)
}

// place is where in the queue a call waits. One client's answers go before its new calls, which may have to wait longer.
func (s *modernSide) place(next turn) int {
	if next.Round && !s.Questions.Shared {
		if i := slices.IndexFunc(s.Queue, func(c turn) bool { return !c.Round }); i >= 0 {
			return i
		}
	}
	return len(s.Queue)
}

// run starts or continues a call that arrived at came; s.env was scanned from line.
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

// proceed starts waiting calls, and assigns waiting questions, after a call has ended.
func (s *modernSide) proceed() {
	s.Questions.assign()
	for len(s.Queue) > 0 && !s.Questions.busy(s.Queue[0]) {
		next := s.Queue[0]
		s.Queue = s.Queue[1:]
		if s.env.Scan(next.Line) == nil {
			s.run(next.Line, next.Came)
		}
	}
	s.verbosity()
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
	if s.Questions.Shared {
		s.Questions.gather(q)
		return
	}
	s.Questions.add(q)
	s.proceed()
}
