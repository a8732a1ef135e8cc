package session

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// OpenListen stores a subscriptions/listen request that was forwarded.
func (s *Session) OpenListen(id, line, params []byte) *Listen {
	l := &Listen{
		ID:     bytes.Clone(id),
		Line:   bytes.Clone(line),
		Filter: bytes.Clone(jsonrpc.Find(params, "notifications").Of(params)),
	}
	s.Listens = append(s.Listens, l)
	return l
}

// ListenByID returns the open listen request with this raw id, nil if there is none.
func (s *Session) ListenByID(id []byte) *Listen {
	for _, l := range s.Listens {
		if jsonrpc.SameID(l.ID, id) {
			return l
		}
	}
	return nil
}

// CloseListen removes a listen request that has ended.
func (s *Session) CloseListen(id []byte) {
	s.Listens = slices.DeleteFunc(s.Listens, func(l *Listen) bool { return jsonrpc.SameID(l.ID, id) })
}

// Wants reports whether the request asks for notifications about changes of the list.
func (l *Listen) Wants(list mcp.List) bool { return list.In(l.Filter) }

// Lists is the part of the request's raw filter that is about lists.
func (l *Listen) Lists() []byte { return mcp.ListenFilter(l.Wants, nil) }
