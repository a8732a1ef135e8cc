package natsengine

import (
	"context"
	"slices"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/outlive-mcp/outlive/internal/fleet/judge"
)

// EndedAddress is where a hub is asked how a host's connection has ended.
const EndedAddress = "hub.ended"

// endedThere are the ends of connections that the machine's own system has told of: it closes those of a program that ends,
// and resets them where that has left bytes unread. Silence is noticed by other means, long before its own error.
var endedThere = []string{server.ClientClosed.String(), server.ReadError.String(), server.WriteError.String()}

// Serve answers what machines ask the hub.
func (h *Hub) Serve(e *Engine) (stop func(), err error) {
	return e.Serve(EndedAddress, func(_ context.Context, _ string, host []byte) []byte { return []byte(h.howEnded(string(host))) })
}

// howEnded is how a machine stands by its last connection: [judge.Works] while it has one, [judge.Lost] if it has had none since the hub
// was started, or the hub has ended it.
func (h *Hub) howEnded(host string) judge.Standing {
	if all, err := h.server.Connz(&server.ConnzOptions{Username: true, User: host, State: server.ConnOpen, Limit: 1}); err == nil && len(all.Conns) > 0 {
		return judge.Works
	}
	all, err := h.server.Connz(&server.ConnzOptions{Username: true, User: host, State: server.ConnClosed, Sort: server.ByStop, Limit: 1})
	if err != nil || len(all.Conns) == 0 {
		return judge.Lost
	}
	switch reason := all.Conns[0].Reason; {
	case slices.Contains(endedThere, reason):
		return judge.Gone
	case reason != server.Kicked.String(): // or the hub has ended it
		return judge.CutOff
	}
	return judge.Lost
}
