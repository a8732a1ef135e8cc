package gateway

import (
	"bytes"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// levelFor is how long requests wait for a server to confirm its log level: a server that handles requests concurrently
// would start them at the old level. Servers confirm at once; one that does not must not delay its clients.
const levelFor = time.Second

// leveling owns the log level of a link's server.
type leveling struct {
	link *Link

	told []byte    // raw params of the last logging/setLevel sent
	by   time.Time // deadline of its confirmation; zero: none is awaited
}

// set sends the server a log level. Requests wait until it is confirmed.
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

// tick ends the wait for a server that does not confirm.
func (v *leveling) tick() {
	if v.link.gw.isDue(&v.by) {
		v.settled()
	}
}

// settled sends the requests that waited for the log level.
func (v *leveling) settled() {
	v.by = time.Time{}
	if v.link.phase == ready {
		v.link.sendWaiting()
	}
}

// sendWaiting sends the waiting requests, unless they must wait for the log level.
func (l *Link) sendWaiting() {
	if l.level.pending() {
		return
	}
	waiting := l.waiting
	l.waiting = nil
	for _, e := range waiting {
		if l.awaitsTurn(e) {
			l.waiting = append(l.waiting, e)
			continue
		}
		e.send()
	}
}
