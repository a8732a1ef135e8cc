package backend

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// batch is a client's JSON array of messages. Its elements go to the server one by one; their answers return as one
// array.
type batch struct {
	open    int // elements whose answer is still to come, and one for the loop over the elements
	answers []byte
}

// clientBatch takes an array. Only one protocol version allows it, and never for the handshake.
func (b *Backend) clientBatch(line []byte) {
	line = bytes.Clone(line) // the elements are scanned while others are answered
	allowed := b.session.Version == mcp.BatchVersion
	group := &batch{open: 1}
	empty := true
	before := b.eras.adapter
	var rest []byte // what comes behind an element that has put a bridge in front of all this
	for at := range jsonrpc.Elements(line) {
		empty = false
		if now := b.eras.adapter; now == nil || now == before {
			b.clientElement(at.Of(line), allowed, group)
			continue
		}
		rest = append(append(rest, ','), at.Of(line)...)
	}
	if empty {
		b.blocked(line, nil, "empty batch")
	}
	b.flow.closeBatch(group)
	if rest != nil {
		rest[0] = '['
		b.eras.adapter.said(append(rest, ']'))
	}
}

// clientElement takes one element. Requests are answered in the array, and what is no message but has an id.
func (b *Backend) clientElement(one []byte, allowed bool, group *batch) {
	err := b.env.Scan(one)
	isRequest := err == nil && b.env.Kind == jsonrpc.Request
	switch {
	case !allowed:
		b.refuseElement(one)
	case err != nil || !b.env.Version2 || b.env.Kind == jsonrpc.Batch:
		before := len(group.answers)
		group.open++
		if b.rejectClient(one, err, group); len(group.answers) == before { // it has no id
			b.flow.closeBatch(group)
		}
	case !isRequest:
		b.clientMessage(one, nil)
	case mcp.Lookup(b.env.Method.Of(one)) == mcp.Initialize:
		group.open++
		b.flow.collectLine(group, jsonrpc.AppendError(nil, b.env.ID.Of(one), jsonrpc.InvalidRequest,
			"invalid request: initialize must not be part of a batch", nil))
	default:
		group.open++
		b.clientMessage(one, group)
	}
}

// refuseElement answers one element of an array that the protocol version does not allow.
func (b *Backend) refuseElement(one []byte) {
	id := b.env.ID.Of(one)
	b.blocked(one, id, "batch not allowed")
	if id != nil && !jsonrpc.IsNull(id) {
		b.tell(jsonrpc.AppendError(nil, id, jsonrpc.InvalidRequest,
			"invalid request: this protocol version has no batches", outcome{Reason: reasonInvalid, Delivered: "no"}.raw()))
	}
}

// collect adds the answer of one call to its batch.
func (f *flow) collect(c *call, line []byte) { f.collectLine(c.batch, line) }

func (f *flow) collectLine(g *batch, line []byte) {
	if len(g.answers) == 0 {
		g.answers = append(g.answers, '[')
	} else {
		g.answers = append(g.answers, ',')
	}
	g.answers = append(g.answers, line...)
	f.closeBatch(g)
}

// closeBatch notes that one element needs no (further) answer, and sends the array after the last.
func (f *flow) closeBatch(g *batch) {
	g.open--
	if g.open == 0 && len(g.answers) > 0 {
		f.eras.sayBare(append(g.answers, ']')) // a bridge that has come meanwhile does not know the array
	}
}
