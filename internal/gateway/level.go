package gateway

import (
	"bytes"
	"time"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
)

// levelFor is how long requests wait for a server to confirm its log level. One that works on several requests at once
// would otherwise begin them at the old level. Servers confirm at once; one that does not must not keep its clients.
const levelFor = time.Second

// setLevel tells the server which log messages are wanted. What clients ask of it next waits until it has taken that in.
func (l *Link) setLevel(params []byte) {
	if params == nil || bytes.Equal(params, l.level) || !l.capability("logging") {
		return
	}
	l.level = params
	l.levelBy = l.gw.now.Add(levelFor)
	l.gw.at(l.levelBy)
	l.ask(mcp.SetLevel, func(id []byte) []byte {
		return jsonrpc.AppendRequest(nil, id, mcp.SetLevel.String(), params)
	}, func(_, _ []byte) {
		if bytes.Equal(params, l.level) {
			l.levelNow()
		}
	})
}

// leveling reports whether the server has not confirmed its log level yet.
func (l *Link) leveling() bool { return !l.levelBy.IsZero() }

// levelTick ends the waiting for a server that does not confirm its log level.
func (l *Link) levelTick() {
	switch {
	case !l.leveling():
	case l.gw.now.Before(l.levelBy):
		l.gw.at(l.levelBy)
	default:
		l.levelNow()
	}
}

// levelNow sends what has waited for the log level.
func (l *Link) levelNow() {
	l.levelBy = time.Time{}
	if l.phase == ready {
		l.sendWaiting()
	}
}

// sendWaiting sends what has waited for the server, unless that is to wait for its log level.
func (l *Link) sendWaiting() {
	if l.leveling() {
		return
	}
	waiting := l.waiting
	l.waiting = nil
	for _, e := range waiting {
		e.send()
	}
}
