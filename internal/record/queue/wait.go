package queue

import (
	"errors"
	"time"
)

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
