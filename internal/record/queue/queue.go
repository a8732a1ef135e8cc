package queue

import (
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
