package bridge

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// batch is an array of messages that is answered with one array.
type batch struct {
	Open  int // requests without an answer
	Lines [][]byte
}

// batch takes an array of messages. Only one version of the protocol has them; clients of others get an error.
func (s *legacySide) batch(line []byte) {
	var requests, others [][]byte
	for at := range jsonrpc.Elements(line) {
		message := bytes.Clone(at.Of(line))
		if s.env.Scan(message) != nil || s.env.Kind == jsonrpc.Batch {
			continue
		}
		if s.env.Kind == jsonrpc.Request {
			requests = append(requests, message)
		}
		others = append(others, message)
	}
	if s.Phase != ready || s.Version != mcp.BatchVersion {
		for _, message := range requests {
			id := member(message, "id")
			s.toClient(jsonrpc.AppendError(nil, id, jsonrpc.InvalidRequest,
				"invalid request: this protocol version has no batches", nil))
		}
		return
	}
	group := 0
	if len(requests) > 0 {
		s.Last++
		group = s.Last
		s.Batches[group] = &batch{Open: len(requests)}
	}
	for _, message := range others {
		if s.env.Scan(message) != nil {
			continue
		}
		s.group = group
		if mcp.Lookup(s.env.Method.Of(message)) == mcp.Initialize && s.env.Kind == jsonrpc.Request {
			s.refuse(s.env.ID.Of(message), jsonrpc.InvalidRequest, "invalid request: initialize must stand alone")
		} else {
			s.message(message)
		}
		s.group = 0
	}
}

// collect adds an answer to its batch, and sends that when it is whole.
func (s *legacySide) collect(group int, line []byte) {
	if b := s.Batches[group]; b != nil {
		b.Lines = append(b.Lines, bytes.Clone(line))
		s.leave(group)
	}
}

// leave counts one request less that a batch waits for.
func (s *legacySide) leave(group int) {
	b := s.Batches[group]
	if b == nil {
		return
	}
	if b.Open--; b.Open > 0 {
		return
	}
	delete(s.Batches, group)
	if len(b.Lines) > 0 {
		s.toClient(append(append([]byte{'['}, bytes.Join(b.Lines, []byte{','})...), ']'))
	}
}
