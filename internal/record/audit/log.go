package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/record/queue"
	"github.com/outlive-mcp/outlive/internal/record/rotation"
)

const (
	closePatience = time.Second // how long Close waits for the file to accept more
	lineLimit     = 64 << 10    // longest line, in bytes
)

// Log is the audit log. It implements [event.Sink].
type Log struct {
	path  string
	file  *rotation.File // of the queue's goroutine
	queue *queue.Queue
}

var _ event.Sink = (*Log)(nil)

// Open returns the log that appends to path. The file and its directory are created at the first event. onFailure is called once for
// each series of failures, on the log's goroutine, for example when the path cannot be written or the disk is full; the log keeps trying.
// Open's own error means that path is invalid.
func Open(path string, onFailure func(error)) (*Log, error) {
	if path == "" {
		return nil, errors.New("open audit log: empty path")
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil, fmt.Errorf("open audit log: %s is a directory", path)
	}
	l := &Log{path: path, file: rotation.New(path)}
	failed := func(err error) { onFailure(fmt.Errorf("write audit log %s: %w", path, err)) }
	l.queue = queue.New(l.file, gap, queue.Options{Failed: failed, WholeLines: true})
	return l, nil
}

// gap is the line in place of events that are missing.
func gap(g queue.Gap) []byte {
	return AppendLine(nil, event.Event{Type: event.ServerLogLost, Time: time.Now(), Level: slog.LevelWarn,
		Message: fmt.Sprintf("%d events (%d bytes) are missing here: they could not be written in time", g.Lines, g.Bytes),
		Attrs:   []slog.Attr{slog.Int(event.KeyCount, g.Lines)}}, os.Getpid())
}

// Path returns where the log is written.
func (l *Log) Path() string { return l.path }

// Lost returns how many events could not be written: full queue, full disk, unwritable path, closed log.
func (l *Log) Lost() int { return l.queue.Lost() }

// Emit implements [event.Sink]. It never blocks.
func (l *Log) Emit(e event.Event) { l.queue.Put(AppendLine(nil, e, os.Getpid()), 1) }

// Flush writes what is queued; it gives up as [queue.Queue.Flush] does.
func (l *Log) Flush() error {
	if err := l.queue.Flush(); err != nil {
		return fmt.Errorf("flush %s: %w", l.path, err)
	}
	return nil
}

// Close writes what is queued, as long as data is accepted but at most 2 s, and closes the file. Later events are counted as lost.
func (l *Log) Close() error {
	if err := l.queue.Close(closePatience); err != nil {
		return fmt.Errorf("close %s: %w", l.path, err)
	}
	l.file.Close()
	return nil
}

// timeLayout is UTC with three fraction digits (TP-8).
const timeLayout = "2006-01-02T15:04:05.000Z"

// logger is the proxy's name in every line (TP-8).
const logger = "mcp_proxy"

// stringLimit is the maximum length of one string attribute, in bytes; longer ones are cut.
const stringLimit = 4 << 10

// AppendLine appends e as one line of JSON, newline included, in TP-8's order of fields. server_pid is absent when no
// server runs; proxyPID is the process id of outlive.
func AppendLine(dst []byte, e event.Event, proxyPID int) []byte {
	dst = append(dst, `{"timestamp":"`...)
	dst = e.Time.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, `","level":"`...)
	dst = append(dst, event.LevelName(e.Level)...)
	dst = append(dst, `","logger":"`+logger+`","message":`...)
	dst = appendString(dst, e.Message)
	dst = append(dst, `,"event_type":`...)
	dst = appendString(dst, string(e.Type))
	dst = append(dst, `,"proxy_pid":`...)
	dst = strconv.AppendInt(dst, int64(proxyPID), 10)
	if e.ServerPID != 0 {
		dst = append(dst, `,"server_pid":`...)
		dst = strconv.AppendInt(dst, int64(e.ServerPID), 10)
	}
	dst = append(dst, `,"restart_count":`...)
	dst = strconv.AppendInt(dst, int64(e.RestartCount), 10)
	dst = append(dst, `,"generation":`...)
	dst = strconv.AppendInt(dst, int64(e.Generation), 10)
	for _, a := range e.Attrs {
		if len(dst) > lineLimit {
			break
		}
		dst = append(dst, ',')
		dst = appendString(dst, a.Key)
		dst = append(dst, ':')
		dst = appendValue(dst, a.Value.Any())
	}
	return append(dst, "}\n"...)
}

func appendValue(dst []byte, v any) []byte {
	text, is := v.(string)
	if !is {
		if b, err := marshal(v); err == nil && len(b) <= stringLimit {
			return append(dst, b...)
		}
		text = fmt.Sprint(v)
	}
	return appendString(dst, text)
}

// appendString appends s as a JSON string, at most [stringLimit] of it; bytes that are not UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	b, err := marshal(strings.ToValidUTF8(logline.Head(s, stringLimit), "\uFFFD"))
	if err != nil {
		return append(dst, `""`...) // a string can always be encoded
	}
	return append(dst, b...)
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
