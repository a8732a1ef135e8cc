package gateway

import (
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// array is where the answers to a client's JSON array of messages go: they return as one array. It takes the place of the
// client's stream in the exchanges of the elements; what is no answer is sent on at once.
type array struct {
	*jsonrpc.Gathering
	to Stream
}

// Send implements [Stream].
func (a *array) Send(line []byte) {
	var env jsonrpc.Envelope
	if env.Scan(line) != nil || env.Kind != jsonrpc.Response && env.Kind != jsonrpc.ErrorResponse || !a.Take(env.ID.Of(line), line) {
		a.to.Send(line)
		return
	}
	a.sendWhole()
}

// Withdraw notes that an element is not answered any more, by its raw id.
func (a *array) Withdraw(id string) {
	if a.Drop([]byte(id)) {
		a.sendWhole()
	}
}

func (a *array) sendWhole() {
	if whole, done := a.Done(); done && whole != nil {
		a.to.Send(whole)
	}
}

// array takes a JSON array, which one version of the protocol allows, though not for the handshake.
func (s *Session) array(line []byte, reply Stream) {
	env := &s.gw.client
	a := &array{&jsonrpc.Gathering{}, reply}
	for at := range jsonrpc.Elements(line) {
		one := at.Of(line)
		a.Expect(one)
		err := env.Scan(one)
		request := err == nil && env.Kind == jsonrpc.Request
		switch {
		case s.version != mcp.BatchVersion && request:
			reply.Send(jsonrpc.AppendError(nil, env.ID.Of(one), jsonrpc.InvalidRequest, "invalid request: this protocol version has no batches", nil))
		case s.version != mcp.BatchVersion:
		case request && mcp.Lookup(env.Method.Of(one)) == mcp.Initialize:
			a.Send(jsonrpc.AppendError(nil, env.ID.Of(one), jsonrpc.InvalidRequest, "invalid request: initialize must not be part of a batch", nil))
		case err == nil && env.Kind == jsonrpc.Batch: // arrays have no arrays in them, and no id that could be answered
		default:
			s.message(one, a)
		}
	}
	a.Complete()
	a.sendWhole()
}
