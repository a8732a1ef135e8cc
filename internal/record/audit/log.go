package audit

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/queue"
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
	closePatience = time.Second // how long Close waits for the file to accept more
	lineLimit     = 64 << 10    // longest line, in bytes
)

// Log is the audit log. It implements [event.Sink].
type Log struct {
	opts  Options
	file  *file // of the queue's goroutine
	queue *queue.Queue
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
	opts.ProxyPID = cmp.Or(opts.ProxyPID, os.Getpid())
	opts.MaxSizeMiB = cmp.Or(opts.MaxSizeMiB, 10)
	opts.MaxBackups = cmp.Or(opts.MaxBackups, 5)
	opts.MaxAgeDays = cmp.Or(opts.MaxAgeDays, 14)
	l := &Log{opts: opts, file: &file{path: path, opts: opts}}
	l.queue = queue.New(l.file, l.gap, queue.Options{Failed: l.failed, WholeLines: true})
	return l, nil
}

// gap is the line in place of events that are missing.
func (l *Log) gap(g queue.Gap) []byte {
	return AppendLine(nil, event.Event{Type: event.ServerLogLost, Time: time.Now(), Level: slog.LevelWarn,
		Message: fmt.Sprintf("%d events (%d bytes) are missing here: they could not be written in time", g.Lines, g.Bytes),
		Attrs:   []slog.Attr{slog.Int(event.KeyCount, g.Lines)}}, l.opts.ProxyPID)
}

func (l *Log) failed(err error) {
	if l.opts.OnFailure != nil {
		l.opts.OnFailure(fmt.Errorf("write audit log %s: %w", l.file.path, err))
	}
}

// Path returns where the log is written.
func (l *Log) Path() string { return l.file.path }

// Lost returns how many events could not be written: full queue, full disk, unwritable path, closed log.
func (l *Log) Lost() int { return l.queue.Lost() }

// Emit implements [event.Sink]. It never blocks.
func (l *Log) Emit(e event.Event) { l.queue.Put(AppendLine(nil, e, l.opts.ProxyPID), 1) }

// Flush writes what is queued; it gives up as [queue.Queue.Flush] does.
func (l *Log) Flush() error {
	if err := l.queue.Flush(); err != nil {
		return fmt.Errorf("flush %s: %w", l.file.path, err)
	}
	return nil
}

// Close writes what is queued, as long as data is accepted but at most 2 s, and closes the file. Later events are counted as lost.
func (l *Log) Close() error {
	if err := l.queue.Close(closePatience); err != nil {
		return fmt.Errorf("close %s: %w", l.file.path, err)
	}
	l.file.close()
	return nil
}
