package wire

import (
	"errors"
	"os"
)

// copyLimit is the largest rest of a short write, in bytes, that is copied; a longer one keeps its source's buffer.
const copyLimit = 64 << 10

// ErrSinkClosed is given to OnError when the other side closed its end while nothing was being written.
var ErrSinkClosed = errors.New("reader closed its end")

// SinkOptions say what the owner of a sink wants to know. All callbacks run on the loop's goroutine.
type SinkOptions struct {
	// OnDrain is called when everything that had to wait was written.
	OnDrain func()
	// OnError is called once when nothing can be written any more. What was not written stays in Pending.
	OnError func(err error)
}

// Sink writes lines to one descriptor of a [Loop] and never blocks: what the other side does not take is queued.
// Lines of one batch go out in one write. The queue is not bounded here: whoever feeds the sink looks at Pending.
type Sink struct {
	loop    *Loop
	opts    SinkOptions
	file    *os.File
	fd      int
	private bool // the descriptor is non-blocking: a raw system call on it returns at once
	pos     int  // index in the loop's poll set

	batch   [][]byte // of the running dispatch, not yet written
	own     []byte   // bytes of batch that were sent, not forwarded
	queue   []chunk  // refused by the kernel so far
	pending int      // bytes in queue
	dirty   bool     // in the loop's flush list
	dead    bool
	closing bool // close once the queue is empty
	done    bool
}

// chunk is a piece of the queue; release, if set, gives the buffer it lies in back.
type chunk struct {
	data    []byte
	release func()
}

var newline = []byte{'\n'}

// Forward queues a line of the source that is being dispatched, with its newline, without copying it.
func (k *Sink) Forward(line []byte) {
	if cap(line) > len(line) && line[:len(line)+1][len(line)] == '\n' {
		k.put(line[:len(line)+1])
		return
	}
	k.put(line)
	k.put(newline)
}

// Send queues a copy of line with a newline.
func (k *Sink) Send(line []byte) {
	start := len(k.own)
	if need := start + len(line) + 1; need > cap(k.own) && start > 0 {
		// Growing would move bytes the batch points at; they stay where they are, a new buffer begins.
		k.own, start = make([]byte, 0, max(2*cap(k.own), need)), 0
	}
	k.own = append(append(k.own, line...), '\n')
	k.put(k.own[start:len(k.own):len(k.own)])
}

// put adds p to the batch, as part of the last piece where they touch in memory.
func (k *Sink) put(p []byte) {
	if k.done {
		return
	}
	if n := len(k.batch); n > 0 {
		last := k.batch[n-1]
		if cap(last) > len(last) && &last[:len(last)+1][len(last)] == &p[0] {
			k.batch[n-1] = last[:len(last)+len(p)]
			k.mark()
			return
		}
	}
	k.batch = append(k.batch, p)
	k.mark()
}

func (k *Sink) mark() {
	if !k.dirty {
		k.dirty = true
		k.loop.dirty = append(k.loop.dirty, k)
	}
}

// Pending returns how many bytes are queued and not yet taken by the kernel.
func (k *Sink) Pending() int {
	n := k.pending
	for _, p := range k.batch {
		n += len(p)
	}
	return n
}

// flush writes the batch, or queues it behind what waits already.
func (k *Sink) flush() {
	k.dirty = false
	batch := k.batch
	if len(k.queue) == 0 && !k.dead {
		batch = k.writeBatch(batch)
	}
	for _, p := range batch {
		k.enqueue(p)
	}
	clear(k.batch)
	k.batch = k.batch[:0]
	if cap(k.own) > HeapLimit {
		k.own = nil
	}
	k.own = k.own[:0]
	if k.closing && len(k.queue) == 0 {
		k.shut()
	}
}

// writeBatch writes as much as the descriptor takes and returns the rest.
func (k *Sink) writeBatch(batch [][]byte) [][]byte {
	for len(batch) > 0 {
		n, err := k.loop.write(k, batch)
		batch = skip(batch, n)
		if err != nil {
			k.fail(err)
			return batch
		}
		if n == 0 {
			return batch
		}
	}
	return nil
}

// skip drops the first n bytes of batch.
func skip(batch [][]byte, n int) [][]byte {
	for n > 0 && len(batch) > 0 {
		if n < len(batch[0]) {
			batch[0] = batch[0][n:]
			return batch
		}
		n -= len(batch[0])
		batch = batch[1:]
	}
	return batch
}

// enqueue keeps p: short pieces as a copy, a long one by taking over the buffer of the source it came from.
func (k *Sink) enqueue(p []byte) {
	k.pending += len(p)
	if k.dead {
		return // only counted: nobody will ever read it
	}
	src := k.loop.current
	if len(p) <= copyLimit || src == nil || src.hold == nil || !within(p, src.hold.Bytes) {
		k.copyToQueue(p)
		return
	}
	hold := src.detach()
	k.queue = append(k.queue, chunk{data: p, release: hold.Release})
}

// copyToQueue appends p to the last chunk if that is ours and has room.
func (k *Sink) copyToQueue(p []byte) {
	if n := len(k.queue); n > 0 {
		if last := &k.queue[n-1]; last.release == nil && cap(last.data)-len(last.data) >= len(p) {
			last.data = append(last.data, p...)
			return
		}
	}
	buf := make([]byte, 0, max(copyLimit, len(p)))
	k.queue = append(k.queue, chunk{data: append(buf, p...)})
}

// within reports whether p lies in buf.
func within(p, buf []byte) bool {
	if len(p) == 0 || len(buf) == 0 {
		return false
	}
	// Slices of one array share the end of their capacity.
	return &p[:cap(p)][cap(p)-1] == &buf[:cap(buf)][cap(buf)-1]
}

// drain writes the queue on; the loop calls it when the descriptor takes bytes again.
func (k *Sink) drain() {
	for len(k.queue) > 0 {
		c := &k.queue[0]
		n, err := k.loop.write(k, [][]byte{c.data})
		c.data = c.data[n:]
		k.pending -= n
		if err != nil {
			k.fail(err)
			return
		}
		if len(c.data) > 0 {
			return
		}
		if c.release != nil {
			c.release()
		}
		k.queue[0] = chunk{}
		k.queue = k.queue[1:]
	}
	k.queue = nil
	if k.closing {
		k.shut()
		return
	}
	if k.opts.OnDrain != nil {
		k.opts.OnDrain()
	}
}

// fail ends writing. The queue is dropped but stays counted, so that the owner knows what was never delivered.
func (k *Sink) fail(err error) {
	if k.dead {
		return
	}
	k.dead = true
	k.dropQueue()
	if k.opts.OnError != nil {
		k.opts.OnError(err)
	}
}

func (k *Sink) dropQueue() {
	for i := range k.queue {
		if k.queue[i].release != nil {
			k.queue[i].release()
		}
	}
	k.queue = nil
}

// CloseWhenDrained closes the descriptor as soon as everything queued is written (at once if nothing is).
func (k *Sink) CloseWhenDrained() {
	k.closing = true
	if len(k.queue) == 0 && !k.dirty {
		k.shut()
	}
}

// Close closes the descriptor; what is queued is lost.
func (k *Sink) Close() {
	k.dropQueue()
	k.shut()
}

func (k *Sink) shut() {
	if k.done {
		return
	}
	k.done, k.dead = true, true
	k.loop.removeSink(k)
}
