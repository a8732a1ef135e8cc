package bridge

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// levelFor is how long a call waits for a legacy server to confirm the call's log level: a server that handles requests
// concurrently would start the call at the old level. Servers confirm at once; one that does not must not delay the call
// for long.
const levelFor = time.Second

// leveling owns the log level of a legacy server, and the lines that wait until it is confirmed.
type leveling struct {
	*core

	Level int       // that the server was told, -1 for none
	ID    string    // raw id of the logging/setLevel that it has not answered, "" for none
	Lines []leveled // what waits for it, in order
	Until time.Time // when that is sent in any case; zero while nothing waits
}

// leveled is a line for the server that waits for the log level of its call.
type leveled struct {
	Wire   string // of the call
	Line   []byte
	Begins bool // the call itself, not an answer within it
}

// reset forgets everything: a new handshake was done.
func (l *leveling) reset() {
	l.Level, l.ID, l.Lines, l.Until = -1, "", nil, time.Time{}
}

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

// send sends the server a line of a call, once the log level that the call asks for is in force.
func (l *leveling) send(c *call, line []byte, begins bool) {
	if l.ID == "" || c.Level < 0 {
		l.toServer(line)
		return
	}
	if len(l.Lines) == 0 {
		l.Until = l.now.Add(levelFor)
	}
	l.Lines = append(l.Lines, leveled{Wire: c.Wire, Line: line, Begins: begins})
}

// release sends what waits for the log level.
func (l *leveling) release() {
	waiting := l.Lines
	l.ID, l.Lines, l.Until = "", nil, time.Time{}
	for _, one := range waiting {
		l.toServer(one.Line)
	}
}

// unsent reports whether the server has not been told of a call yet.
func (l *leveling) unsent(c *call) bool {
	return slices.ContainsFunc(l.Lines, func(one leveled) bool { return one.Begins && one.Wire == c.Wire })
}

// unsend forgets what waits of a call.
func (l *leveling) unsend(c *call) {
	if l.Lines = slices.DeleteFunc(l.Lines, func(one leveled) bool { return one.Wire == c.Wire }); len(l.Lines) == 0 {
		l.Until = time.Time{}
	}
}
