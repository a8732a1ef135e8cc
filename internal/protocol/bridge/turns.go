package bridge

import (
	"bytes"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// turn is a call that waits for its turn.
type turn struct {
	ID, Line []byte
	Came     time.Time
	Target   string // what it calls
}

// takeTurn runs a call that may be asked something, or makes it wait for another one.
func (s *modernSide) takeTurn(id, line []byte) {
	target := s.Questions.target(line)
	if s.Questions.busy(target, s.now) || len(s.Queue) > 0 && s.Questions.inLine(target) {
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
	for len(s.Queue) > 0 && !s.Questions.busy(s.Queue[0].Target, s.Queue[0].Came) {
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
