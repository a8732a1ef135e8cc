package logline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Format is how the lines look.
type Format string

// The formats of --log-format.
const (
	Text Format = "text" // [2026-01-13T22:30:00.123456Z] [SUPERVISOR] message (WD-14)
	JSON Format = "json" // one object a line: time, level, tag, msg, event and the event's attributes
)

// ParseFormat returns the format called name; "" is [Text]. The error lists the names there are.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case "", Text:
		return Text, nil
	case JSON:
		return f, nil
	}
	return "", fmt.Errorf("unknown log format %q: want text or json", name)
}

// Options tune a [Writer]. What the watchdog's first lines tell comes from here, because no event carries it.
type Options struct {
	Format Format     // default Text
	Level  slog.Level // events below it are not told; default Info

	Command    []string // "Command: …", unless Executable is a Python interpreter
	Executable string   // what Command[0] resolved to, not following links; "Python: …" (WD-15)
	Dir        string   // "CWD: …"
	PID        int      // "PID: …": outlive's own
	Inherit    bool     // the watchdog's mode: no [PROXY] line at the start
	Elsewhere  bool     // the server is no process: the watchdog has no words for what happens to a connection
	Gateway    bool     // events are of many servers: each is told as one [GATEWAY] line with its message
}

const (
	// closePatience is how long Close and Flush wait for somebody to read on.
	closePatience = 200 * time.Millisecond
	// linePatience is how long an unfinished line of the server is held back so that none of ours comes into its middle.
	linePatience = 200 * time.Millisecond
	// heldLimit is how long, in bytes, such a line may grow.
	heldLimit = 64 << 10
)

// ErrUnflushed is returned by Close when not everything could be written in time.
var ErrUnflushed = errors.New("log not flushed in time")

// Writer writes the log lines. It implements [event.Sink]; its methods may be called from any goroutine and never
// block.
type Writer struct {
	queue *queue

	mu     sync.Mutex // one order for lines and raw bytes
	opts   Options
	tells  narrator
	buf    []byte
	held   []byte      // the server's unfinished line
	timer  *time.Timer // lets held go
	inLine bool        // what was queued last did not end its line
	closed bool
}

var _ event.Sink = (*Writer)(nil)

// NewWriter returns a writer to out, which only its goroutine touches from here on.
func NewWriter(out io.Writer, opts Options) *Writer {
	if opts.Format == "" {
		opts.Format = Text
	}
	w := &Writer{opts: opts, tells: narrator{opts: opts}}
	w.queue = newQueue(out, nil, w.tellGap)
	return w
}

// tellGap is the line that says how much is missing. It is told whatever the level is.
func (w *Writer) tellGap(g gap) []byte {
	e := event.Event{Type: event.ServerLogLost, Time: time.Now(), Level: slog.LevelWarn,
		Message: fmt.Sprintf("%d lines (%d bytes) are missing here: nobody read them in time", g.lines, g.bytes)}
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
	lines := w.tells.tell(e) // also when nothing is written: it keeps the order
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
		w.queue.put(w.buf, 1)
	}
}

// Raw passes bytes of the server's stderr through unchanged. A line is held until it is whole, so that none of ours
// comes into its middle; one that stays unfinished for 200 ms is passed on as it is.
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

// release queues what is held and then p.
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
	w.queue.put(p, lines)
}

// Room returns nil if there is room for more of the server's stderr. Otherwise too much waits to be read already, and the
// channel is closed when there is room again, or when nothing was read for 2 s. A caller that can wait loses nothing
// to a reader that takes its time.
func (w *Writer) Room() <-chan struct{} { return w.queue.room() }

// Lost returns how many lines nobody took in time.
func (w *Writer) Lost() int { return w.queue.lostLines() }

// Close writes what is queued, as [Writer.Flush] does, and ends the goroutine. What comes later is counted as lost.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.release(nil)
	w.closed = true
	w.mu.Unlock()
	if !w.queue.close(closePatience) {
		return ErrUnflushed
	}
	return nil
}
