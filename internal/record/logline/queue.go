package logline

import (
	"bytes"
	"io"
	"sync"
	"time"
)

const (
	// roomy is how many bytes may wait for a slow reader while there is room for more: see queue.room.
	roomy = 256 << 10
	// most is how many may wait at all: not everybody can be made to wait.
	most = 2 << 20
	// pieceSize is how much is written at once, in bytes. Every piece that is taken shows that somebody reads, so it is
	// as small as what a pipe takes whole.
	pieceSize = 4 << 10
	// stalledAfter is how long a destination may take nothing until nobody waits for it any more.
	stalledAfter = 2 * time.Second
)

// gap is what is missing in the output at one place.
type gap struct{ lines, bytes int }

// queue holds bytes for one goroutine that writes them.
//
// Who can wait does so while too much is queued (room), so that a destination that takes its time gets everything. If it
// takes nothing at all for stalledAfter, nobody waits any more and what does not fit is dropped, until it has caught up;
// how much is missing is then written in its place.
type queue struct {
	out     io.Writer
	onError func(error)      // called from the goroutine, may be nil
	tellGap func(gap) []byte // what is written where something is missing, called from the goroutine, may be nil

	mu      sync.Mutex
	waiting []byte
	lines   int           // in waiting
	lost    int           // lines
	missing gap           // behind what is waiting; not told yet
	full    bool          // something was dropped: so is all that follows, until there is room
	stalled bool          // the destination took nothing for too long and has not caught up since
	taken   int           // pieces that the destination has taken
	vacant  chan struct{} // closed when there is room again; nil: nobody waits for that
	writing bool          // the goroutine is at it
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

// miss notes that something is lost. The caller holds mu.
func (q *queue) miss(g gap) {
	q.lost += g.lines
	q.missing.lines += g.lines
	q.missing.bytes += g.bytes
}

// room returns nil if there is room for more, otherwise a channel that is closed when there is, or when the destination
// is given up.
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

// watch gives the destination up if it takes nothing while somebody waits for it. The caller holds mu.
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

// vacate lets those go on that wait for room. The caller holds mu.
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

// run is the queue's goroutine. Two buffers take turns, so that nothing is allocated once they have grown.
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

// write writes a batch, and how much is missing behind it.
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
	if err != nil && q.tellGap != nil { // told with the next batch
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

// pieces writes p in pieces that end with a line where that is possible, and returns how much of it was taken.
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

// close refuses further lines and waits until the queued ones are written, or gives up as [queue.flush] does. It reports
// whether all were.
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
