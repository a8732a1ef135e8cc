package backend

import (
	"bytes"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// cutFor is how long the end of a listen is held back: a server that shuts down ends its streams just before it exits,
// and the next process opens them again.
const cutFor = 500 * time.Millisecond

// cutShort is a message that ends a listen stream, not yet shown to the client.
type cutShort struct {
	id   []byte
	line []byte
	ends bool // the answer of the request itself, not the notification before it
}

// listenEnded handles the answer to subscriptions/listen: the stream's end. An error is an ordinary answer.
func (s *streams) listenEnded(c *call, line []byte) []byte {
	s.reopened(c.id)
	if s.env.Kind == jsonrpc.ErrorResponse {
		return line
	}
	s.hold(cutShort{id: bytes.Clone(c.id), line: jsonrpc.Replace(nil, line, s.env.ID, c.id), ends: true})
	return nil
}

// stream is the client's stream with a raw id; nil: there is none.
func (s *streams) stream(id []byte) *call {
	if c := s.calls.find(id); c != nil && c.method == mcp.Listen {
		return c
	}
	return nil
}

// listenCancelled handles notifications/cancelled of a modern server for one of the client's listens.
func (s *streams) listenCancelled(id, line []byte) bool {
	if s.stream(id) == nil {
		return false
	}
	s.hold(cutShort{id: bytes.Clone(id), line: bytes.Clone(line)})
	return true
}

func (s *streams) hold(c cutShort) {
	s.cut = append(s.cut, c)
	s.arm(timerCut, cutFor)
}

// releaseCut forwards the ends of streams whose server did not exit.
func (s *streams) releaseCut() {
	held := s.cut
	s.cut = nil
	for _, h := range held {
		if !h.ends {
			s.tell(h.line)
			continue
		}
		if c := s.calls.find(h.id); c != nil {
			s.flow.answer(c, h.line)
		}
	}
}

// swallowAck reports whether an acknowledgement must not reach the client, because it has had one. If the new process
// grants less than the old one did, the stream is ended.
func (s *streams) swallowAck(line []byte) bool {
	meta := s.env.Meta.Of(line)
	c := s.stream(jsonrpc.Find(meta, mcp.MetaSubscriptionID).Of(meta))
	if c == nil {
		return false
	}
	granted := jsonrpc.FindPath(line, "params", "notifications").Of(line)
	if c.acked == nil {
		c.acked = bytes.Clone(granted)
		s.lists.tellMissed()
		return false
	}
	s.reopened(c.id)
	if !mcp.Covers(granted, c.acked) {
		s.endListen(c)
		return true
	}
	if s.opts.Remote || s.eras.translating(mcp.Legacy) {
		// Changes of the resources may have been missed: a server elsewhere went on while the connection was away, and a legacy
		// client is told so after each restart.
		uris := jsonrpc.Find(c.acked, "resourceSubscriptions").Of(c.acked)
		for uri := range jsonrpc.Elements(uris) {
			s.tell(mcp.UpdatedLine(uri.Of(uris), c.id))
		}
	}
	return true
}

// endListen ends a stream on both sides.
func (s *streams) endListen(c *call) {
	if c.state == sent {
		s.process.say(mcp.CancelledLine(c.id, "subscription ended"))
	}
	cancelled, answer := mcp.ListenEndedLines(c.id, mcp.LessIsCovered)
	s.tell(cancelled)
	s.flow.answer(c, answer)
}
