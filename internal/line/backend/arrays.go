package backend

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// arrays is the client's end at which JSON arrays of messages are taken apart: their elements go in one by one, in whatever era, and
// their answers return as one array. Only one version of the protocol has arrays.
type arrays struct {
	Client
	env  jsonrpc.Envelope // scratch
	open []*jsonrpc.Gathering
	now  *jsonrpc.Gathering // of the array whose elements are being handled, one of open; nil: none is
}

// ForwardToClient implements Client.
func (a *arrays) ForwardToClient(line []byte) {
	if len(a.open) == 0 || !a.takes(line) {
		a.Client.ForwardToClient(line)
	}
}

// SendToClient implements Client.
func (a *arrays) SendToClient(line []byte) {
	if len(a.open) == 0 || !a.takes(line) {
		a.Client.SendToClient(line)
	}
}

// takes collects a line that answers an element.
func (a *arrays) takes(line []byte) bool {
	if a.env.Scan(line) != nil || a.env.Kind != jsonrpc.Response && a.env.Kind != jsonrpc.ErrorResponse {
		return false
	}
	id := a.env.ID.Of(line)
	return a.now != nil && a.now.Take(id, line) || a.any(func(g *jsonrpc.Gathering) bool { return g.Take(id, line) })
}

// refuse sends the refusal of a line that nobody else has seen. It belongs to an array only if the line is an element of that: another
// line may have the id of an element, whose own answer is still to come.
func (a *arrays) refuse(line []byte) {
	if a.now == nil || a.env.Scan(line) != nil || !a.now.Take(a.env.ID.Of(line), line) {
		a.Client.SendToClient(line)
	}
}

// cancelled notes that the client gives up an element, if line says so.
func (a *arrays) cancelled(line []byte) {
	if a.env.Scan(line) == nil && a.env.Kind == jsonrpc.Notification && mcp.Lookup(a.env.Method.Of(line)) == mcp.NoteCancelled {
		id := a.env.RequestID.Of(line)
		number := jsonrpc.IntegerText(id) // as the mender takes it
		a.any(func(g *jsonrpc.Gathering) bool { return g.Drop(id) || number != nil && g.Drop(number) })
	}
}

// any applies change to the first array that it concerns, and sends that if it is whole.
func (a *arrays) any(change func(*jsonrpc.Gathering) bool) bool {
	i := slices.IndexFunc(a.open, change)
	if i < 0 {
		return false
	}
	a.sendWhole(i)
	return true
}

// sendWhole sends one of the open arrays, if all its elements are answered.
func (a *arrays) sendWhole(i int) {
	array, done := a.open[i].Done()
	if !done {
		return
	}
	a.open = slices.Delete(a.open, i, i+1)
	if array != nil {
		a.Client.SendToClient(array)
	}
}

// awaits reports whether a raw id is that of an element without an answer.
func (a *arrays) awaits(id []byte) bool {
	return slices.ContainsFunc(a.open, func(g *jsonrpc.Gathering) bool { return g.Awaits(id) })
}

// clientArray takes an array.
func (b *Backend) clientArray(line []byte) {
	line = bytes.Clone(line) // the elements are handled one after another
	allowed := b.eras.clientVersion() == mcp.BatchVersion
	g := &jsonrpc.Gathering{}
	if allowed {
		b.arrays.open, b.arrays.now = append(b.arrays.open, g), g
	}
	empty := true
	for at := range jsonrpc.Elements(line) {
		empty = false
		one := at.Of(line)
		g.Expect(one)
		err := b.env.Scan(one)
		switch {
		case !allowed:
			b.refuseElement(one, "this protocol version has no batches")
		case err == nil && b.env.Kind == jsonrpc.Batch:
			b.blocked(one, nil, "an array within an array")
		case err == nil && b.env.Kind == jsonrpc.Request && mcp.Lookup(b.env.Method.Of(one)) == mcp.Initialize:
			b.refuseElement(one, "initialize must not be part of a batch")
		default:
			b.clientLine(one, err)
		}
	}
	if empty {
		b.blocked(line, nil, "empty batch")
	}
	b.arrays.now = nil
	g.Complete()
	if i := slices.Index(b.arrays.open, g); i >= 0 {
		b.arrays.sendWhole(i)
	}
}

// refuseElement answers one element of an array, if it has an id and is no answer itself, whose id is that of a question of the server;
// env was scanned from it.
func (b *Backend) refuseElement(one []byte, why string) {
	id := b.env.ID.Of(one)
	b.blocked(one, id, why)
	if id != nil && !jsonrpc.IsNull(id) && b.env.Kind != jsonrpc.Response && b.env.Kind != jsonrpc.ErrorResponse {
		b.answerClient(jsonrpc.AppendError(nil, id, jsonrpc.InvalidRequest, "invalid request: "+why,
			outcome{Reason: reasonInvalid, Delivered: "no"}.raw()))
	}
}

// clientVersion is the protocol version that the client has settled on; "": none yet.
func (e *eras) clientVersion() string {
	if e.bridge == nil {
		return e.session.Version
	}
	return e.bridge.ClientVersion()
}
