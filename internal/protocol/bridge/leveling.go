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
	ID    string    // raw id of the logging/setLevel that it has not answered, "" for none
	Until time.Time // when what waits for it is sent in any case; zero: nothing waits
}

// reset forgets everything: a new handshake was done.
func (l *leveling) reset() { l.Level, l.ID, l.Until = -1, "", time.Time{} }

// tell sends the server a level, unless it is none or was sent already.
func (l *leveling) tell(level int) {
	if level < 0 || level == l.Level {
		return
	}
	var id string
	id = l.askOwn(mcp.SetLevel, append(jsonrpc.AppendQuoted([]byte(`{"level":`), mcp.LogLevels[level]), '}'), func([]byte) {
		if l.ID == id {
			l.release()
		}
	})
	l.Level, l.ID = level, id
}

// send sends the server an answer that a call goes on with, once the log level that the call asks for is in force.
func (l *leveling) send(c *call, line []byte) {
	c.Late = append(c.Late, line)
	switch {
	case l.ID == "" || c.Level < 0:
		l.flush(c)
	case l.Until.IsZero():
		l.Until = l.now.Add(levelFor)
	}
}

// flush sends what waits of a call.
func (l *leveling) flush(c *call) {
	for _, line := range c.Late {
		l.toServer(line)
	}
	l.forget(c)
}

// forget drops what waits of a call.
func (l *leveling) forget(c *call) {
	if c.Late = nil; !l.Until.IsZero() && !l.Calls.has((*call).late) {
		l.Until = time.Time{}
	}
}

// release sends what waits for the log level.
func (l *leveling) release() {
	l.ID, l.Until = "", time.Time{}
	for _, c := range l.Calls {
		l.flush(c)
	}
}
