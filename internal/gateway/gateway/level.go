package gateway

import (
	"bytes"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// levelFor is how long requests wait for a server to confirm its log level. One that works on several requests at once
// would otherwise begin them at the old level. Servers confirm at once; one that does not must not keep its clients.
const levelFor = time.Second

// leveling owns the log level of a link's server.
type leveling struct {
	link *Link

	told []byte    // raw params of the logging/setLevel that the server was told
	by   time.Time // when nobody waits for its answer to that any more; zero: nobody does
}

// set tells the server which log messages are wanted. What clients ask of it next waits until it has taken that in.
func (v *leveling) set(params []byte) {
	l := v.link
	if params == nil || bytes.Equal(params, v.told) || !l.capability("logging") {
		return
	}
	v.told = params
	v.by = l.gw.now.Add(levelFor)
	l.gw.at(v.by)
	l.ask(mcp.SetLevel, func(id []byte) []byte {
		return jsonrpc.AppendRequest(nil, id, mcp.SetLevel.String(), params)
	}, func(_, _ []byte) {
		if bytes.Equal(params, v.told) {
			v.settled()
		}
	})
}

// pending reports whether the server has not confirmed its log level yet.
func (v *leveling) pending() bool { return !v.by.IsZero() }

// tick ends the waiting for a server that does not confirm its log level.
func (v *leveling) tick() {
	switch gw := v.link.gw; {
	case !v.pending():
	case gw.now.Before(v.by):
		gw.at(v.by)
	default:
		v.settled()
	}
}

// settled has what has waited for the log level sent.
func (v *leveling) settled() {
	v.by = time.Time{}
	if v.link.phase == ready {
		v.link.sendWaiting()
	}
}

// sendWaiting sends what has waited for the server, unless that is to wait for its log level.
func (l *Link) sendWaiting() {
	if l.level.pending() {
		return
	}
	waiting := l.waiting
	l.waiting = nil
	for _, e := range waiting {
		e.send()
	}
}
