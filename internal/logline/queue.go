package logline

import (
	"io"
	"sync"
	"time"
)

// queueLimit is how many bytes may wait for a slow reader.
const queueLimit = 256 << 10

// queue holds bytes for one goroutine that writes them.
type queue struct {
	out     io.Writer
	onError func(error) // called from the goroutine, may be nil

	mu      sync.Mutex
	waiting []byte
	lines   int  // in waiting
	lost    int  // lines
	writing bool // the goroutine is at it
	closed  bool

	wake chan struct{}
	done chan struct{}
}

func newQueue(out io.Writer, onError func(error)) *queue {
	q := &queue{out: out, onError: onError, wake: make(chan struct{}, 1), done: make(chan struct{})}
	go q.run()
	return q
}

// put queues a copy of p, which counts as so many lines, or counts them as lost.
func (q *queue) put(p []byte, lines int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || len(q.waiting)+len(p) > queueLimit {
		q.lost += lines
		return
	}
	q.waiting = append(q.waiting, p...)
	q.lines += lines
	select {
	case q.wake <- struct{}{}:
	default:
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
		q.mu.Lock()
		batch, q.waiting = q.waiting, batch[:0]
		lines := q.lines
		q.lines = 0
		q.writing = len(batch) > 0
		closed := q.closed
		q.mu.Unlock()
		if len(batch) == 0 {
			if closed {
				return
			}
			<-q.wake
			continue
		}
		if _, err := q.out.Write(batch); err != nil {
			q.mu.Lock()
			q.lost += lines
			q.mu.Unlock()
			if q.onError != nil {
				q.onError(err)
			}
		}
	}
}

// close refuses further lines and waits until the queued ones are written, or gives up. It reports whether all were.
func (q *queue) close(patience time.Duration) bool {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.wake)
	}
	q.mu.Unlock()
	select {
	case <-q.done:
		return true
	case <-time.After(patience):
		q.mu.Lock()
		q.lost += q.lines
		q.lines, q.waiting = 0, nil
		q.mu.Unlock()
		return false
	}
}
