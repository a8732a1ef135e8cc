package queue

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// roomy is how many bytes may be queued while there is still room for more: see [Queue.Room].
	roomy = 256 << 10
	// most is how many may be queued at all, because not all callers can wait.
	most = 2 << 20
	// stalledAfter is after how long a destination that accepts nothing is no longer waited for.
	stalledAfter = 2 * time.Second
)

// Gap is the amount of output that is missing at one place.
type Gap struct{ Lines, Bytes int }

func (g *Gap) add(more Gap) {
	g.Lines += more.Lines
	g.Bytes += more.Bytes
}

// Options are settings of a [Queue].
type Options struct {
	// Failed is called once for each series of failures, on the queue's goroutine. It may be nil.
	Failed func(error)
	// WholeLines: the destination gets no part of a line. All that is put are complete lines then.
	WholeLines bool
	// Piece is how many bytes are written at once. Each accepted piece shows that the destination is read. 0: 4 KiB, which a pipe
	// accepts at once.
	Piece int
}

// Queue holds bytes for one goroutine that writes them. Its methods may be called from any goroutine.
type Queue struct {
	out     io.Writer
	tellGap func(Gap) []byte
	opts    Options
	state   written // of the goroutine

	mu      sync.Mutex
	waiting []byte
	lines   int           // in waiting
	lost    int           // lines
	missing Gap           // after what is waiting
	full    bool          // something was dropped: everything that follows is dropped, too, until there is room
	stalled bool          // the destination accepted nothing for too long and has not caught up since
	taken   int           // pieces that the destination has accepted
	vacant  chan struct{} // closed when there is room again; nil: no caller waits
	writing bool          // the goroutine is writing
	closed  bool

	wake chan struct{}
	done chan struct{}
}

// New returns a queue for out, which from now on only its goroutine uses. tellGap returns the line that is written in place of
// a gap; it is called on that goroutine.
func New(out io.Writer, tellGap func(Gap) []byte, opts Options) *Queue {
	opts.Piece = cmp.Or(opts.Piece, pieceSize)
	q := &Queue{out: out, tellGap: tellGap, opts: opts, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// Put queues a copy of p, which counts as so many lines, or counts them as lost. It does not wait.
func (q *Queue) Put(p []byte, lines int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := most
	if q.stalled {
		limit = roomy
	}
	if q.full = q.full || len(q.waiting)+len(p) > limit; q.closed || q.full {
		q.lost += lines
		q.missing.add(Gap{lines, len(p)})
	} else {
		q.waiting = append(q.waiting, p...)
		q.lines += lines
	}
	if q.closed {
		return
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Room returns nil if there is room for more. Otherwise the channel is closed when there is, or when the destination is given
// up because it accepted nothing for 2 s.
func (q *Queue) Room() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.stalled || len(q.waiting) < roomy {
		return nil
	}
	if q.vacant == nil {
		q.vacant = make(chan struct{})
		q.watch(q.vacant)
	}
	return q.vacant
}

// watch gives the destination up if it accepts nothing while a caller waits for room. The caller holds mu.
func (q *Queue) watch(waitedFor chan struct{}) {
	before := q.taken
	time.AfterFunc(stalledAfter, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		switch {
		case q.vacant != waitedFor:
		case q.taken == before:
			q.stalled = true
			q.vacate()
		default:
			q.watch(waitedFor)
		}
	})
}

// vacate wakes the callers that wait for room. The caller holds mu.
func (q *Queue) vacate() {
	if q.vacant != nil {
		close(q.vacant)
		q.vacant = nil
	}
}

// Lost returns how many lines were dropped.
func (q *Queue) Lost() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

const (
	// flushPatience is how long [Queue.Flush] waits for the destination to accept more.
	flushPatience = 200 * time.Millisecond
	// flushLook is how often a queue is checked while it is being flushed.
	flushLook = 200 * time.Microsecond
	// flushLimit is the longest wait for a destination that accepts data slowly.
	flushLimit = 2 * time.Second
)

// ErrUnflushed is the error when not everything could be written in time.
var ErrUnflushed = errors.New("not flushed in time")

// Flush waits until everything queued so far is written. It gives up when the destination accepts nothing for 200 ms, at the
// latest after 2 s, with [ErrUnflushed].
func (q *Queue) Flush() error { return q.await(flushPatience, q.idle) }

// Close rejects further lines and waits until the queued ones are written. It gives up as [Queue.Flush] does, with another
// patience. What is put later is counted as lost.
func (q *Queue) Close(patience time.Duration) error {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		q.vacate()
		close(q.wake)
	}
	q.mu.Unlock()
	err := q.await(patience, func() bool {
		select {
		case <-q.done:
			return true
		default:
			return false
		}
	})
	if err != nil {
		q.mu.Lock()
		q.lost += q.lines
		q.lines, q.waiting = 0, nil
		q.mu.Unlock()
	}
	return err
}

func (q *Queue) await(patience time.Duration, over func() bool) error {
	begun := time.Now()
	for seen, since := q.progress(), begun; !over(); time.Sleep(flushLook) {
		now := time.Now()
		if n := q.progress(); n != seen {
			seen, since = n, now
		}
		if now.Sub(since) > patience || now.Sub(begun) > max(patience, flushLimit) {
			return ErrUnflushed
		}
	}
	return nil
}

func (q *Queue) progress() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken
}

func (q *Queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && !q.writing
}

// pieceSize is the default of [Options.Piece].
const pieceSize = 4 << 10

// written is what the goroutine knows of the destination.
type written struct {
	owed    Gap  // missing before what is written next, and not told yet
	midLine bool // the last byte was no line end
	failing bool // the last write failed
}

// run is the queue's goroutine. It alternates between two buffers, so that nothing is allocated once they have grown.
func (q *Queue) run() {
	defer close(q.done)
	var batch []byte
	for {
		if cap(batch) > 2*roomy {
			batch = nil
		}
		q.mu.Lock()
		batch, q.waiting = q.waiting, batch[:0]
		after := q.missing
		q.missing, q.lines, q.full = Gap{}, 0, false
		q.writing = len(batch) > 0
		closed := q.closed
		q.vacate()
		q.mu.Unlock()
		if len(batch) == 0 {
			q.state.owed.add(after)
			if closed {
				q.outcome(q.tell())
				return
			}
			<-q.wake
			continue
		}
		q.write(batch, after)
	}
}

// write writes what is to be told of the gap before a batch, the batch, and the size of the gap after it.
func (q *Queue) write(batch []byte, after Gap) {
	n, err := 0, q.tell()
	if err == nil {
		n, err = q.pieces(batch)
	}
	rest, lines := batch[n:], 0
	if len(rest) > 0 {
		lines = bytes.Count(rest[:len(rest)-1], []byte{'\n'}) + 1
		q.state.owed.add(Gap{lines, len(rest)})
	}
	if q.state.owed.add(after); err == nil {
		err = q.tell()
	}
	q.mu.Lock()
	q.lost += lines
	q.stalled = false
	q.mu.Unlock()
	q.outcome(err)
}

// outcome reports the first failure of a series.
func (q *Queue) outcome(err error) {
	if err != nil && !q.state.failing && q.opts.Failed != nil {
		q.opts.Failed(err)
	}
	q.state.failing = err != nil
}

// tell writes the size of a gap that is not told yet.
func (q *Queue) tell() error {
	if q.state.owed == (Gap{}) {
		return nil
	}
	text := q.tellGap(q.state.owed)
	if q.state.midLine {
		text = append([]byte{'\n'}, text...)
	}
	_, err := q.pieces(text)
	if err == nil {
		q.state.owed = Gap{}
	}
	return err
}

// pieces writes p in pieces that end at line ends if possible, and returns how much was accepted.
func (q *Queue) pieces(p []byte) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(len(p), n+q.opts.Piece)]
		if end := bytes.LastIndexByte(piece, '\n') + 1; end > 0 {
			piece = piece[:end]
		} else if q.opts.WholeLines {
			line, _, _ := bytes.Cut(p[n:], []byte{'\n'})
			piece = p[n:min(len(p), n+len(line)+1)]
		}
		took, err := q.out.Write(piece)
		if n += took; took > 0 {
			q.state.midLine = piece[took-1] != '\n'
		}
		if err != nil {
			return n, err
		}
		q.mu.Lock()
		q.taken++
		q.mu.Unlock()
	}
	return n, nil
}
