package backend

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
)

const (
	// prettyFor and prettyMax bound how long the lines of a pretty-printed message are collected.
	prettyFor = time.Second
	prettyMax = 1 << 20
	// noiseEvery is the least time between two events about noise; what comes between is counted.
	noiseEvery = time.Second
)

// noise is what one process writes to stdout that is no message, or not yet: the lines of a message that was printed
// over several lines are put together again.
type noise struct {
	lines  [][]byte // an unfinished message, line by line
	joined []byte   // the same in one piece
	open   int      // brackets that are open behind it
}

// babble counts the noise of all processes. It is never forwarded.
type babble struct {
	count  int // lines not yet told
	total  int
	toldAt time.Time
}

func (n *noise) holding() bool { return len(n.lines) > 0 }

// begin starts collecting: line opens an object and does not close it.
func (n *noise) begin(b *Backend, line []byte) {
	n.lines = append(n.lines[:0], append([]byte(nil), line...))
	n.joined = append(n.joined[:0], line...)
	n.open = bracketsOpen(line)
	b.arm(timerNoise, prettyFor)
}

// add takes the next line while a message is being collected; err is what scanning the line by itself said. It
// reports whether the line was taken. A line that is a message by itself shows that what was collected is not one.
func (n *noise) add(b *Backend, p *process, line []byte, err error) bool {
	if err == nil {
		n.flush(b, p)
		return false
	}
	n.lines = append(n.lines, append([]byte(nil), line...))
	n.joined = append(n.joined, line...)
	n.open += bracketsOpen(line)
	if joined := n.joined; n.open <= 0 && b.env.Scan(joined) == nil && b.env.Version2 {
		n.lines, n.joined = nil, nil
		b.serverMessage(p, joined)
		return true
	}
	if n.open <= 0 || len(n.joined) > prettyMax {
		n.flush(b, p)
	}
	return true
}

// bracketsOpen counts the brackets a line opens and does not close; a string never goes on in the next line. So each
// line is looked at once, however long the message gets.
func bracketsOpen(line []byte) (open int) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open++
		case c == '}' || c == ']':
			open--
		}
	}
	return open
}

// flush gives up collecting: it was noise after all.
func (n *noise) flush(b *Backend, p *process) {
	lines := n.lines
	n.lines, n.joined = nil, nil
	for _, l := range lines {
		b.tellNoise(p, l)
	}
}

// flushNoise gives up collecting messages in several lines.
func (b *Backend) flushNoise() {
	for p := range b.all {
		p.noise.flush(b, p)
	}
}

// tellNoise hands a line of p's noise on to stderr and reports it, at most one event a second.
func (b *Backend) tellNoise(p *process, line []byte) {
	b.world.Noise(line)
	n := &b.babble
	n.count++
	n.total++
	if !n.toldAt.IsZero() && b.now.Sub(n.toldAt) < noiseEvery {
		return
	}
	b.emitOf(p, event.StdoutNoise, slog.LevelWarn, "Server stdout (no MCP message): "+excerpt(jsonrpc.Trim(line)),
		slog.String(event.KeyRawLine, excerpt(line)), slog.Int(event.KeyCount, n.count))
	n.count, n.toldAt = 0, b.now
}
