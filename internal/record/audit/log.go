package audit

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Options are settings of a [Log]. The zero value means the documented defaults: 10 MiB a file, 5 old files, 14 days.
type Options struct {
	ProxyPID   int // "proxy_pid" of every line; 0: this process
	MaxSizeMiB int // size at which the file is rotated; 0: 10
	MaxBackups int // rotated files kept; 0: 5
	MaxAgeDays int // age at which a rotated file is removed, at the next rotation; 0: 14
	// OnFailure is called once for each series of failures, on the log's goroutine, for example when the path cannot
	// be written or the disk is full. The log keeps trying. It may be nil.
	OnFailure func(error)
}

const (
	queueLines    = 1024                   // maximum number of queued lines
	flushPatience = time.Second            // how long Close waits
	shortPatience = 200 * time.Millisecond // how long Flush waits
	flushLook     = 200 * time.Microsecond // its polling interval
	retryPause    = time.Second            // between attempts to open a path that failed
	lineLimit     = 64 << 10               // longest line, in bytes
)

// ErrUnflushed is returned by [Log.Close] if not everything was written in time.
var ErrUnflushed = errors.New("audit log not flushed in time")

// Log is the audit log. It implements [event.Sink].
type Log struct {
	opts  Options
	file  *file
	lines chan []byte
	done  chan struct{}
	lost  atomic.Int64
	open  atomic.Int64 // lines that are queued and not handled yet

	mu     sync.RWMutex // guards lines: Emit must not send when it is closed
	closed bool
}

var _ event.Sink = (*Log)(nil)

// Open returns the log that appends to path. The file and its directory are created at the first event; an error of
// that is passed to OnFailure. Open's own error means that path or opts are invalid.
func Open(path string, opts Options) (*Log, error) {
	if path == "" {
		return nil, errors.New("open audit log: empty path")
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil, fmt.Errorf("open audit log: %s is a directory", path)
	}
	if opts.MaxSizeMiB < 0 || opts.MaxBackups < 0 || opts.MaxAgeDays < 0 {
		return nil, errors.New("open audit log: limits must not be negative")
	}
	opts.ProxyPID = orDefault(opts.ProxyPID, os.Getpid())
	opts.MaxSizeMiB = orDefault(opts.MaxSizeMiB, 10)
	opts.MaxBackups = orDefault(opts.MaxBackups, 5)
	opts.MaxAgeDays = orDefault(opts.MaxAgeDays, 14)
	l := &Log{
		opts:  opts,
		file:  &file{path: path, opts: opts},
		lines: make(chan []byte, queueLines),
		done:  make(chan struct{}),
	}
	go l.write()
	return l, nil
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

// Path returns where the log is written.
func (l *Log) Path() string { return l.file.path }

// Lost returns how many events could not be written: full queue, full disk, unwritable path, closed log.
func (l *Log) Lost() int { return int(l.lost.Load()) }

// Emit implements [event.Sink]. It never blocks.
func (l *Log) Emit(e event.Event) {
	line := AppendLine(nil, e, l.opts.ProxyPID)
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		l.lost.Add(1)
		return
	}
	l.open.Add(1)
	select {
	case l.lines <- line:
	default:
		l.open.Add(-1)
		l.lost.Add(1)
	}
}

// Close writes what is queued, for at most a second, and closes the file. Later events are counted as lost.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.lines)
	}
	l.mu.Unlock()
	select {
	case <-l.done:
		return nil
	case <-time.After(flushPatience):
		return fmt.Errorf("close %s: %w", l.file.path, ErrUnflushed)
	}
}

// write is the log's goroutine.
func (l *Log) write() {
	defer close(l.done)
	defer l.file.close()
	var t trouble
	for line := range l.lines {
		l.writeLine(line, &t)
		l.open.Add(-1)
	}
}

// trouble is the state of the log's goroutine while the path cannot be written.
type trouble struct {
	failing   bool
	notBefore time.Time // time of the next attempt
}

func (l *Log) writeLine(line []byte, t *trouble) {
	if t.failing && time.Now().Before(t.notBefore) {
		l.lost.Add(1)
		return
	}
	err := l.file.append(line)
	if err == nil {
		t.failing = false
		return
	}
	l.lost.Add(1)
	t.notBefore = time.Now().Add(retryPause)
	if !t.failing && l.opts.OnFailure != nil {
		l.opts.OnFailure(fmt.Errorf("write audit log %s: %w", l.file.path, err))
	}
	t.failing = true
}

// Flush writes what is queued, for at most 200 ms.
func (l *Log) Flush() error {
	for end := time.Now().Add(shortPatience); l.open.Load() > 0; time.Sleep(flushLook) {
		if time.Now().After(end) {
			return fmt.Errorf("flush %s: %w", l.file.path, ErrUnflushed)
		}
	}
	return nil
}
