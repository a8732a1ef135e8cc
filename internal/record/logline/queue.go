package logline

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// roomy is how many bytes may be queued while there is still room for more: see queue.room.
	roomy = 256 << 10
	// most is how many may be queued at all, because not all callers can wait.
	most = 2 << 20
	// pieceSize is how many bytes are written at once. Each accepted piece shows that the destination is read, so a
	// piece is not larger than what a pipe accepts at once.
	pieceSize = 4 << 10
	// stalledAfter is after how long a destination that accepts nothing is no longer waited for.
	stalledAfter = 2 * time.Second
)

// gap is the amount of output that is missing at one place.
type gap struct{ lines, bytes int }

// queue holds bytes for one goroutine that writes them.
//
// Callers that can wait do so while too much is queued (room), so that a slow destination gets everything. If it
// accepts nothing at all for stalledAfter, callers do not wait any more and what does not fit is dropped, until it
// has caught up; the size of the gap is then written in its place.
type queue struct {
	out     io.Writer
	onError func(error)      // called on the goroutine, may be nil
	tellGap func(gap) []byte // returns what is written in place of a gap; called on the goroutine, may be nil

	mu      sync.Mutex
	waiting []byte
	lines   int           // in waiting
	lost    int           // lines
	missing gap           // after what is waiting; not written yet
	full    bool          // something was dropped: everything that follows is dropped, too, until there is room
	stalled bool          // the destination accepted nothing for too long and has not caught up since
	taken   int           // pieces that the destination has accepted
	vacant  chan struct{} // closed when there is room again; nil: no caller waits
	writing bool          // the goroutine is writing
	closed  bool

	wake chan struct{}
	done chan struct{}
}

func newQueue(out io.Writer, onError func(error), tellGap func(gap) []byte) *queue {
	q := &queue{out: out, onError: onError, tellGap: tellGap, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// put queues a copy of p, which counts as so many lines, or counts them as lost. It does not wait.
func (q *queue) put(p []byte, lines int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := most
	if q.stalled {
		limit = roomy
	}
	if q.closed || q.full || len(q.waiting)+len(p) > limit {
		q.full = true
		q.miss(gap{lines, len(p)})
		return
	}
	q.waiting = append(q.waiting, p...)
	q.lines += lines
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// miss records a loss. The caller holds mu.
func (q *queue) miss(g gap) {
	q.lost += g.lines
	q.missing.lines += g.lines
	q.missing.bytes += g.bytes
}

// room returns nil if there is room for more, otherwise a channel that is closed when there is, or when the
// destination is given up.
func (q *queue) room() <-chan struct{} {
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
func (q *queue) watch(waitedFor chan struct{}) {
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
func (q *queue) vacate() {
	if q.vacant != nil {
		close(q.vacant)
		q.vacant = nil
	}
}

func (q *queue) lostLines() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lost
}

// run is the queue's goroutine. It alternates between two buffers, so that nothing is allocated once they have grown.
func (q *queue) run() {
	defer close(q.done)
	var batch []byte
	for {
		if cap(batch) > 2*roomy {
			batch = nil
		}
		q.mu.Lock()
		batch, q.waiting = q.waiting, batch[:0]
		missing := q.missing
		if q.lines, q.full = 0, false; len(batch) > 0 {
			q.missing = gap{}
		}
		q.writing = len(batch) > 0
		closed := q.closed
		q.vacate()
		q.mu.Unlock()
		if len(batch) == 0 {
			if closed {
				return
			}
			<-q.wake
			continue
		}
		q.write(batch, missing)
	}
}

// write writes a batch, and the size of the gap after it.
func (q *queue) write(batch []byte, missing gap) {
	n, err := q.pieces(batch)
	if err == nil && missing != (gap{}) && q.tellGap != nil {
		text := q.tellGap(missing)
		if batch[len(batch)-1] != '\n' {
			text = append([]byte{'\n'}, text...)
		}
		if _, err = q.pieces(text); err == nil {
			missing = gap{}
		}
	}
	rest := batch[n:]
	lines := bytes.Count(rest, newline)
	if len(rest) > 0 && rest[len(rest)-1] != '\n' {
		lines++
	}
	q.mu.Lock()
	q.miss(gap{lines, len(rest)})
	if err != nil && q.tellGap != nil { // reported with the next batch
		q.missing.lines += missing.lines
		q.missing.bytes += missing.bytes
	}
	q.stalled = false
	q.mu.Unlock()
	if err != nil && q.onError != nil {
		q.onError(err)
	}
}

var newline = []byte{'\n'}

// pieces writes p in pieces that end at line ends if possible, and returns how much was accepted.
func (q *queue) pieces(p []byte) (n int, err error) {
	for n < len(p) {
		piece := p[n:min(len(p), n+pieceSize)]
		if end := bytes.LastIndexByte(piece, '\n') + 1; end > 0 {
			piece = piece[:end]
		}
		took, err := q.out.Write(piece)
		n += took
		if err != nil {
			return n, err
		}
		q.mu.Lock()
		q.taken++
		q.mu.Unlock()
	}
	return n, nil
}

// close rejects further lines and waits until the queued ones are written, or gives up like [queue.flush]. It reports
// whether all were written.
func (q *queue) close(patience time.Duration) bool {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		q.vacate()
		close(q.wake)
	}
	q.mu.Unlock()
	if q.await(patience, func() bool {
		select {
		case <-q.done:
			return true
		default:
			return false
		}
	}) {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost += q.lines
	q.lines, q.waiting = 0, nil
	return false
}
