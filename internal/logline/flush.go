package logline

import "time"

// flushLook is how often a queue that is being flushed is looked at.
const flushLook = 200 * time.Microsecond

// flush waits until everything queued so far is written, or gives up. It reports whether all was.
func (q *queue) flush(patience time.Duration) bool {
	for end := time.Now().Add(patience); !q.idle(); time.Sleep(flushLook) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) == 0 && !q.writing
}

// Flush writes what is queued, an unfinished line of the server included, for at most 200 ms.
func (w *Writer) Flush() error {
	w.mu.Lock()
	w.release(nil)
	w.mu.Unlock()
	if !w.queue.flush(closePatience) {
		return ErrUnflushed
	}
	return nil
}

// Flush writes what is queued, for at most 200 ms.
func (k *Kept) Flush() error {
	if k.queue != nil && !k.queue.flush(closePatience) {
		return ErrUnflushed
	}
	return nil
}
