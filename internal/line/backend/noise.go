package backend

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

const (
	// prettyFor and prettyMax bound how long the lines of a pretty-printed message are collected.
	prettyFor = time.Second
	prettyMax = 1 << 20
	// noiseEvery is the shortest time between two events about noise; lines in between are counted.
	noiseEvery = time.Second
)

// noise is the non-message output of one process, and the lines of a message that was printed over several lines, which
// are joined again.
type noise struct {
	lines  [][]byte // an unfinished message, line by line
	joined []byte   // the same in one piece
	open   int      // brackets still open after these lines
	doubt  []byte   // such a message that ended in the middle: an answer, if the next line is not one to the same request
}

// noiseLog counts the noise of all processes, which is never forwarded.
type noiseLog struct {
	*core

	count  int // lines not yet told
	total  int
	toldAt time.Time
}

func (n *noise) holding() bool { return len(n.lines) > 0 }

// begin starts collecting: line opens an object and does not close it.
func (n *noiseLog) begin(p *process, line []byte) {
	so := &p.noise
	so.lines = append(so.lines[:0], append([]byte(nil), line...))
	so.joined = append(so.joined[:0], line...)
	so.open = bracketsOpen(line)
	n.arm(timerNoise, prettyFor)
}

// add takes the next line while a message is being collected; err is the result of scanning that line. It reports
// whether the line was used. A line that is a message itself shows that the collected lines are not one.
func (n *noiseLog) add(p *process, line []byte, err error) bool {
	so := &p.noise
	if err == nil {
		so.doubt = n.flush(p)
		return false
	}
	so.lines = append(so.lines, append([]byte(nil), line...))
	so.joined = append(so.joined, line...)
	so.open += bracketsOpen(line)
	switch {
	case so.open <= 0:
		n.close(p)
	case len(so.joined) > prettyMax:
		n.flush(p)
	}
	return true
}

// close takes the collected lines as one message, if they are one.
func (n *noiseLog) close(p *process) {
	joined := p.noise.joined
	switch err := n.env.Scan(joined); {
	case err == nil && n.env.Version2:
		p.noise.lines, p.noise.joined = nil, nil
		n.backend.serverMessage(p, joined)
	case n.mender.oddMessage(p, joined, err):
		p.noise.lines, p.noise.joined = nil, nil
	default:
		n.mender.endBroken(p, n.flush(p))
	}
}

// bracketsOpen counts the brackets that a line opens and does not close; strings never span lines. So each line is
// scanned once, however long the message gets.
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

// flush gives up collecting from p: it was noise. It returns what was collected, in one piece.
func (n *noiseLog) flush(p *process) []byte {
	lines, joined := p.noise.lines, p.noise.joined
	p.noise.lines, p.noise.joined = nil, nil
	for _, l := range lines {
		n.tellNoise(p, l)
	}
	return joined
}

// flushNoise gives up collecting messages in several lines.
func (n *noiseLog) flushNoise() {
	for p := range n.all {
		if p.noise.holding() {
			n.mender.endBroken(p, n.flush(p))
		}
	}
}

// tellNoise copies a line of p's noise to stderr and reports it, with at most one event a second.
func (n *noiseLog) tellNoise(p *process, line []byte) {
	n.world.Noise(line)
	n.count++
	n.total++
	if !n.toldAt.IsZero() && n.now.Sub(n.toldAt) < noiseEvery {
		return
	}
	n.emitOf(p, event.StdoutNoise, slog.LevelWarn, "Server stdout (no MCP message): "+excerpt(jsonrpc.Trim(line)),
		slog.String(event.KeyRawLine, excerpt(line)), slog.Int(event.KeyCount, n.count))
	n.count, n.toldAt = 0, n.now
}
