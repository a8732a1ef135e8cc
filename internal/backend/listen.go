package backend

import (
	"bytes"
	"time"

	"github.com/outlive-mcp/outlive/internal/bridge"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/session"
)

// cutFor is how long the end of a listen is held back: a server that shuts down ends its streams just before it goes,
// and the next one takes them up again.
const cutFor = 500 * time.Millisecond

// cutShort is a message that ends a listen stream, not yet shown to the client.
type cutShort struct {
	id   []byte
	line []byte
	ends bool // the answer of the request itself, not the notification before it
}

// listenEnded handles the answer to subscriptions/listen: the stream's end. An error is an ordinary answer.
func (b *Backend) listenEnded(c *call, line []byte) []byte {
	b.reopened(c.id.raw)
	if b.env.Kind == jsonrpc.ErrorResponse {
		b.session.CloseListen(c.id.raw)
		return line
	}
	b.hold(cutShort{id: bytes.Clone(c.id.raw), line: jsonrpc.Replace(nil, line, b.env.ID, c.id.raw), ends: true})
	return nil
}

// listenCancelled handles notifications/cancelled of a modern server for one of the client's listens.
func (b *Backend) listenCancelled(id, line []byte) bool {
	if b.session.ListenByID(id) == nil {
		return false
	}
	b.hold(cutShort{id: bytes.Clone(id), line: bytes.Clone(line)})
	return true
}

func (b *Backend) hold(c cutShort) {
	b.cut = append(b.cut, c)
	b.arm(timerCut, cutFor)
}

// releaseCut shows the client the ends that were not followed by the server's own.
func (b *Backend) releaseCut() {
	held := b.cut
	b.cut = nil
	for _, h := range held {
		if !h.ends {
			b.world.SendToClient(h.line)
			continue
		}
		b.session.CloseListen(h.id)
		if c := b.calls.find(h.id); c != nil {
			b.answer(c, h.line)
		}
	}
}

// forgetCut drops the ends that came from a server that was going anyway: its streams go on in the next one.
func (b *Backend) forgetCut() {
	b.cut = nil
	b.disarm(timerCut)
}

// swallowAck reports whether an acknowledgement must not reach the client: it has had one for that stream. If the new
// process grants less than the old one did, the stream is ended honestly.
func (b *Backend) swallowAck(line []byte) bool {
	meta := b.env.Meta.Of(line)
	l := b.session.ListenByID(jsonrpc.Find(meta, mcp.MetaSubscriptionID).Of(meta))
	if l == nil {
		return false
	}
	granted := jsonrpc.FindPath(line, "params", "notifications").Of(line)
	if l.Acked == nil {
		l.Acked = bytes.Clone(granted)
		b.tellMissed()
		return false
	}
	b.reopened(l.ID)
	if !l.Covers(granted) {
		b.endListen(l)
		return true
	}
	return !b.translating(bridge.LegacyClient) // which has its client look again at what it is subscribed to
}

// endListen ends a stream towards both sides.
func (b *Backend) endListen(l *session.Listen) {
	id := bytes.Clone(l.ID)
	b.session.CloseListen(id)
	c := b.calls.find(id)
	if c != nil && c.state == sent {
		b.process.send(mcp.CancelledLine(id, "subscription ended"))
	}
	b.world.SendToClient(mcp.CancelledLine(id, "the restarted server does not offer all of this subscription"))
	if c != nil {
		result := append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaSubscriptionID+`":`), id...)
		b.answer(c, jsonrpc.AppendResult(nil, id, append(result, "}}"...)))
	}
}
