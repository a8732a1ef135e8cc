package logline

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/queue"
	"github.com/outlive-mcp/outlive/internal/record/rotation"
)

// KeptOptions are settings of a [Kept].
type KeptOptions struct {
	// Pass is also called with every chunk, before it is queued: [Writer.Raw]. It must not block or keep p. It may be
	// nil.
	Pass func(p []byte)
	// PassRoom says when Pass has room for more: [Writer.Room]. nil: always.
	PassRoom func() <-chan struct{}
	// OnFailure is called once for each series of failures, on Kept's goroutine. It may be nil.
	OnFailure func(error)
}

const (
	tailLimit    = 64 << 10 // bytes of output kept in memory
	tailLine     = 1000     // longest line [Kept.Tail] returns, in bytes
	keptPatience = time.Second
	keptPiece    = 64 << 10 // bytes written at once: for each write the file is locked, and looked for at its path
)

// Kept keeps a server's stderr: all of it in a rotated file, its end in memory. Its methods may be called from any
// goroutine and never block.
//
// A file is written by one process only, because mixed lines of two copies of a server would be useless. [Prune]
// limits what ended copies leave.
type Kept struct {
	path  string
	opts  KeptOptions
	queue *queue.Queue // nil without a file
	file  *rotation.File

	mu      sync.Mutex
	tail    []byte
	midLine bool // the last byte in the file is no end of a line
}

// OpenKept returns a Kept that appends to path; with an empty path it keeps output only in memory. The file is
// created at the first output. If it cannot be written, opts.OnFailure is called, and the loss is counted.
func OpenKept(path string, opts KeptOptions) *Kept {
	k := &Kept{path: path, opts: opts}
	if path == "" {
		return k
	}
	k.file = rotation.New(path)
	k.queue = queue.New(k.file, func(g queue.Gap) []byte {
		return fmt.Appendf(nil, "[outlive] %d lines (%d bytes) are missing here: they could not be written in time\n", g.Lines, g.Bytes)
	}, queue.Options{Failed: k.failed, Piece: keptPiece})
	return k
}

func (k *Kept) failed(err error) {
	if k.opts.OnFailure != nil {
		k.opts.OnFailure(fmt.Errorf("keep stderr in %s: %w", k.path, err))
	}
}

// Path returns the file's path; "" when there is none.
func (k *Kept) Path() string { return k.path }

// Room returns nil if there is room for more. Otherwise the channel is closed when there may be room, see
// [Writer.Room]; call it again then.
func (k *Kept) Room() <-chan struct{} {
	if k.queue != nil {
		if full := k.queue.Room(); full != nil {
			return full
		}
	}
	if k.opts.PassRoom != nil {
		return k.opts.PassRoom()
	}
	return nil
}

// Write keeps p. It never fails or waits: what cannot be kept is counted. A caller that can wait calls [Kept.Room]
// first.
func (k *Kept) Write(p []byte) (int, error) {
	if k.opts.Pass != nil {
		k.opts.Pass(p)
	}
	k.mu.Lock()
	if len(k.tail)+len(p) > 2*tailLimit {
		keep := k.tail[max(0, len(k.tail)-tailLimit):]
		k.tail = k.tail[:copy(k.tail, keep)]
	}
	k.tail = append(k.tail, p[max(0, len(p)-tailLimit):]...)
	k.midLine = len(p) > 0 && p[len(p)-1] != '\n'
	k.mu.Unlock()
	if k.queue != nil {
		k.queue.Put(p, max(1, bytes.Count(p, []byte("\n"))))
	}
	return len(p), nil
}

// Note puts a line of outlive's own into the file, at its place between the server's: what became of the process that wrote them.
// It is not passed on, and not in [Kept.Tail].
func (k *Kept) Note(at time.Time, text string) {
	if k == nil || k.queue == nil {
		return
	}
	line := fmt.Appendf(nil, "[outlive] %s %s\n", at.UTC().Format("2006-01-02T15:04:05.000Z"), Printable(text))
	k.mu.Lock()
	if k.midLine {
		line = append([]byte{'\n'}, line...)
	}
	k.midLine = false
	k.mu.Unlock()
	k.queue.Put(line, 1)
}

// Tail returns the last lines, oldest first, at most n, from the last 64 KiB. Long ones are cut at 1,000 bytes; bytes
// that are not UTF-8 are replaced.
func (k *Kept) Tail(n int) []string {
	k.mu.Lock()
	last := string(k.tail[max(0, len(k.tail)-tailLimit):])
	cut := len(k.tail) > tailLimit
	k.mu.Unlock()
	lines := strings.Split(strings.TrimRight(last, "\r\n"), "\n")
	if cut && len(lines) > 1 {
		lines = lines[1:] // its beginning was overwritten
	}
	if len(lines) == 1 && lines[0] == "" || n <= 0 {
		return nil
	}
	lines = lines[max(0, len(lines)-n):]
	for i, l := range lines {
		l = strings.TrimSuffix(l, "\r")
		if len(l) > tailLine {
			l = l[:tailLine] + "…"
		}
		lines[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	return lines
}

// Lost returns how many lines could not be written to the file.
func (k *Kept) Lost() int {
	if k.queue == nil {
		return 0
	}
	return k.queue.Lost()
}

// Flush writes what is queued; it gives up as [queue.Queue.Flush] does.
func (k *Kept) Flush() error {
	if k.queue == nil {
		return nil
	}
	return k.queue.Flush()
}

// Close writes what is queued, as long as data is accepted but at most 2 s, and closes the file.
func (k *Kept) Close() error {
	if k.queue == nil {
		return nil
	}
	if err := k.queue.Close(keptPatience); err != nil {
		return fmt.Errorf("close %s: %w", k.path, err)
	}
	k.file.Close()
	return nil
}

// Defaults of [Prune].
const (
	PruneTotal = 200 << 20           // bytes
	PruneAge   = 14 * 24 * time.Hour // since the last write
)

// Prune removes log files (*.log) in dir that were last written more than age before now, and then the ones written
// least recently until at most total bytes are left. A file that is inUse is never removed: its writer would go on to write
// where nobody reads.
func Prune(dir string, now time.Time, total int64, age time.Duration, inUse func(path string) bool) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prune logs: %w", err)
	}
	type logFile struct {
		path    string
		written time.Time
		size    int64
	}
	var files []logFile
	for _, e := range entries {
		info, err := e.Info()
		path := filepath.Join(dir, e.Name())
		if err != nil || !info.Mode().IsRegular() || !strings.HasSuffix(e.Name(), ".log") {
			continue
		}
		if inUse(path) {
			total -= info.Size()
			continue
		}
		files = append(files, logFile{path, info.ModTime(), info.Size()})
	}
	slices.SortFunc(files, func(a, b logFile) int { return b.written.Compare(a.written) })
	var failed error
	for _, f := range files {
		total -= f.size
		if total >= 0 && now.Sub(f.written) <= age {
			continue
		}
		if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("prune logs: %w", err))
		}
	}
	return failed
}
