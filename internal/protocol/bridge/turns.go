package bridge

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// takeTurn runs a call that may be asked something, or makes it wait for another one.
func (s *modernSide) takeTurn(next *Call) {
	if !s.Questions.busy(next) && (len(s.Queue) == 0 || !s.Questions.inLine(next.Target)) {
		s.run(next)
		return
	}
	switch c := s.meant(next); {
	case len(s.Queue) >= queueMost:
		s.refuse(next.ID, jsonrpc.InternalError, "too many requests are waiting for their turn")
	case c == nil && next.State != nil:
		s.refuse(next.ID, jsonrpc.InvalidParams, expired)
	default:
		if c != nil {
			c.Expires = s.now.Add(answerFor) // its answer has come in time
		}
		s.Queue = slices.Insert(s.Queue, s.place(next), next)
	}
}

// place is where in the queue a call waits. One client's answers go before its new calls, which may have to wait longer.
func (s *modernSide) place(next *Call) int {
	if next.State != nil && !s.Questions.Shared {
		if i := slices.IndexFunc(s.Queue, func(c *Call) bool { return c.State == nil }); i >= 0 {
			return i
		}
	}
	return len(s.Queue)
}

// run starts or continues a call.
func (s *modernSide) run(next *Call) {
	if next.State != nil {
		s.resume(next)
	} else {
		s.forward(next)
	}
}

// proceed starts waiting calls, and assigns waiting questions, after a call has ended.
func (s *modernSide) proceed() {
	s.Questions.assign()
	for len(s.Queue) > 0 && !s.Questions.busy(s.Queue[0]) {
		next := s.Queue[0]
		s.Queue = s.Queue[1:]
		s.run(next)
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
