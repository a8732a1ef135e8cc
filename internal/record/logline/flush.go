package logline

import "time"

const (
	// flushLook is how often a queue is checked while it is being flushed.
	flushLook = 200 * time.Microsecond
	// flushLimit is the longest wait for a destination that accepts data slowly.
	flushLimit = 2 * time.Second
)

// flush waits until everything queued so far is written. It gives up when the destination accepts nothing for
// patience, at the latest after flushLimit. It reports whether all was written.
func (q *queue) flush(patience time.Duration) bool { return q.await(patience, q.idle) }

func (q *queue) await(patience time.Duration, over func() bool) bool {
	begun := time.Now()
	for seen, since := q.progress(), begun; !over(); time.Sleep(flushLook) {
		now := time.Now()
		if n := q.progress(); n != seen {
			seen, since = n, now
		}
		if now.Sub(since) > patience || now.Sub(begun) > max(patience, flushLimit) {
			return false
		}
	}
	return true
}

func (q *queue) progress() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.taken
}

func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && !q.writing
}

// Flush writes what is queued, including an incomplete line of the server. It gives up when nothing is accepted for
// 200 ms, at the latest after 2 s.
func (w *Writer) Flush() error {
	w.mu.Lock()
	w.release(nil)
	w.mu.Unlock()
	if !w.queue.flush(closePatience) {
		return ErrUnflushed
	}
	return nil
}

// Flush writes what is queued; it gives up as [Writer.Flush] does.
func (k *Kept) Flush() error {
	if k.queue != nil && !k.queue.flush(closePatience) {
		return ErrUnflushed
	}
	return nil
}
