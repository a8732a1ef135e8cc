package bridge

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// levelFor is how long an answer waits for a legacy server to confirm the log level of its call. A server that handles requests
// concurrently would go on at the old level. Servers confirm at once; one that does not must not delay the call for long. Requests
// wait likewise where they are handed to a process, in package backend.
const levelFor = time.Second

// leveling owns the log level of a legacy server. The calls have the answers that wait until it is confirmed.
type leveling struct {
	*core

	Level int       // that the server was told, -1 for none
	Asked *Call     // the logging/setLevel that it has not answered; nil: there is none
	Until time.Time // when what waits for it is sent in any case; zero: nothing waits
}

// reset forgets everything: a new handshake was done.
func (l *leveling) reset() { l.Level, l.Asked, l.Until = -1, nil, time.Time{} }

// tell sends the server a level, unless it is none or was sent already.
func (l *leveling) tell(level int) {
	if level < 0 || level == l.Level {
		return
	}
	var asked *Call
	asked = l.askOwn(mcp.SetLevel, append(jsonrpc.AppendQuoted([]byte(`{"level":`), mcp.LogLevels[level]), '}'), func([]byte) {
		if l.Asked == asked {
			l.release()
		}
	})
	l.Level, l.Asked = level, asked
}

// answer sends the server an answer of a call's client, once the log level of the call is in force.
func (l *leveling) answer(c *Call, line []byte) {
	c.Late = append(c.Late, line)
	switch {
	case l.Asked == nil || c.Level < 0:
		l.flush(c)
	case l.Until.IsZero():
		l.Until = l.now.Add(levelFor)
	}
}

// flush sends what waits of a call.
func (l *leveling) flush(c *Call) {
	for _, line := range c.Late {
		l.toServer(line)
	}
	l.forget(c)
}

// forget drops what waits of a call.
func (l *leveling) forget(c *Call) {
	if c.Late = nil; !l.Until.IsZero() && !l.Calls.has((*Call).late) {
		l.Until = time.Time{}
	}
}

// release sends what waits for the log level.
func (l *leveling) release() {
	l.Asked, l.Until = nil, time.Time{}
	for _, c := range l.Calls {
		l.flush(c)
	}
}
