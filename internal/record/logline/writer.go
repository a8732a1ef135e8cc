package logline

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/queue"
)

// Format is the format of the lines.
type Format string

// The formats of --log-format.
const (
	Text Format = "text" // [2026-01-13T22:30:00.123456Z] [SUPERVISOR] message (WD-14)
	JSON Format = "json" // one object a line: time, level, tag, msg, event and the event's attributes
)

// Options are settings of a [Writer]. They include what the watchdog's first lines show, because no event has it.
type Options struct {
	Format Format     // default Text
	Level  slog.Level // minimum level of reported events; default Info

	Command    []string // "Command: …", unless Executable is a Python interpreter
	Executable string   // what Command[0] resolved to, without following links; "Python: …" (WD-15)
	Dir        string   // "CWD: …"
	PID        int      // "PID: …": outlive's own
	Inherit    bool     // the watchdog's mode: no [PROXY] line at the start
	Elsewhere  bool     // the server is not a process: the watchdog has no lines for connections
	Gateway    bool     // events are of many servers: each is reported as one [GATEWAY] line with its message
}

const (
	// closePatience is how long Close waits for the destination to accept more.
	closePatience = 200 * time.Millisecond
	// linePatience is how long an incomplete line of the server is held back, so that none of our lines is written
	// into it.
	linePatience = 200 * time.Millisecond
	// heldLimit is the maximum length of such a line in bytes.
	heldLimit = 64 << 10
)

// Writer writes the log lines. It implements [event.Sink]; its methods may be called from any goroutine and never
// block.
type Writer struct {
	queue *queue.Queue

	mu     sync.Mutex // keeps lines and raw bytes in one order
	opts   Options
	tells  formatter
	buf    []byte
	held   []byte      // the server's incomplete line
	timer  *time.Timer // releases held
	inLine bool        // what was queued last does not end with a line break
	closed bool
}

var _ event.Sink = (*Writer)(nil)

// NewWriter returns a writer to out, which from now on only its goroutine uses.
func NewWriter(out io.Writer, opts Options) *Writer {
	opts.Format = cmp.Or(opts.Format, Text)
	w := &Writer{opts: opts, tells: formatter{opts: opts}}
	w.queue = queue.New(out, w.tellGap, queue.Options{})
	return w
}

// tellGap is the line about the size of a gap. It is written regardless of the level.
func (w *Writer) tellGap(g queue.Gap) []byte {
	e := event.Event{Type: event.ServerLogLost, Time: time.Now(), Level: slog.LevelWarn,
		Message: fmt.Sprintf("%d lines (%d bytes) are missing here: stderr was not read in time", g.Lines, g.Bytes)}
	l := line{supervisor, marked(e)}
	if w.opts.Gateway {
		l.tag = gateway
	}
	if w.opts.Format == JSON {
		return appendJSON(nil, e, l)
	}
	return appendText(nil, e.Time, l)
}

// Emit implements [event.Sink].
func (w *Writer) Emit(e event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := w.tells.tell(e) // also if nothing is written: it keeps track of the order
	if e.Level < w.opts.Level {
		return
	}
	for _, l := range lines {
		w.buf = w.buf[:0]
		if w.inLine {
			w.buf = append(w.buf, '\n')
			w.inLine = false
		}
		if w.opts.Format == JSON {
			w.buf = appendJSON(w.buf, e, l)
		} else {
			w.buf = appendText(w.buf, e.Time, l)
		}
		w.queue.Put(w.buf, 1)
	}
}

// Raw passes bytes of the server's stderr through unchanged. A line is held back until it is complete, so that none
// of our lines is written into it; one that stays incomplete for 200 ms is passed on as it is.
func (w *Writer) Raw(p []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	end := bytes.LastIndexByte(p, '\n') + 1
	if end > 0 {
		w.release(p[:end])
	}
	w.held = append(w.held, p[end:]...)
	switch {
	case len(w.held) > heldLimit || w.closed:
		w.release(nil)
	case len(w.held) > 0 && w.timer == nil:
		w.timer = time.AfterFunc(linePatience, w.letGo)
	}
}

func (w *Writer) letGo() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = nil
	w.release(nil)
}

// release queues the held line and then p.
func (w *Writer) release(p []byte) {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	if len(w.held) > 0 {
		p = append(w.held, p...)
		w.held = w.held[:0]
	}
	if len(p) == 0 {
		return
	}
	w.inLine = p[len(p)-1] != '\n'
	lines := bytes.Count(p, []byte("\n"))
	if w.inLine {
		lines++
	}
	w.queue.Put(p, lines)
}

// Room returns nil if there is room for more of the server's stderr. Otherwise too much is queued, and the channel is
// closed when there is room again, or when nothing was read for 2 s. A caller that can wait does not lose output when
// the reader is slow.
func (w *Writer) Room() <-chan struct{} { return w.queue.Room() }

// Lost returns how many lines were dropped.
func (w *Writer) Lost() int { return w.queue.Lost() }

// Flush writes what is queued, including an incomplete line of the server. It gives up as [queue.Queue.Flush] does.
func (w *Writer) Flush() error {
	w.mu.Lock()
	w.release(nil)
	w.mu.Unlock()
	return w.queue.Flush()
}

// Close writes what is queued, like [Writer.Flush], and ends the goroutine. Later lines are counted as lost.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.release(nil)
	w.closed = true
	w.mu.Unlock()
	return w.queue.Close(closePatience)
}
