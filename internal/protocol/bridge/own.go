package bridge

import (
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// ownRequests are the bridge's own unanswered requests to a legacy server, without its handshake.
type ownRequests struct {
	*core

	Open map[string]asked // by raw id
}

// asked is what the bridge itself has asked the server.
type asked struct {
	Listen string // raw id of the listen for which a resource was subscribed to; "" for none
	URI    string
}

// ask sends the server one, and returns its raw id.
func (o *ownRequests) ask(m mcp.Method, params []byte, about asked) string {
	id := o.private()
	o.Open[string(id)] = about
	o.toServer(jsonrpc.AppendRequest(nil, id, m.String(), params))
	return string(id)
}

// answered forgets the one with this raw id, and returns what it was about; ok is false if there is none.
func (o *ownRequests) answered(id string) (about asked, ok bool) {
	about, ok = o.Open[id]
	delete(o.Open, id)
	return about, ok
}
