package lineloop

import (
	"errors"
	"os"
)

// copyLimit is the largest rest of a short write, in bytes, that is copied; for a longer one its source's buffer is
// kept.
const copyLimit = 64 << 10

// ErrSinkClosed is passed to OnError when the other side closed its end while nothing was being written.
var ErrSinkClosed = errors.New("reader closed its end")

// SinkOptions are the callbacks of a sink. They run on the loop's goroutine.
type SinkOptions struct {
	// OnDrain is called when the queue has been written.
	OnDrain func()
	// OnError is called once when writing has failed for good. What was not written remains counted in Pending.
	OnError func(err error)
}

// Sink writes lines to one descriptor of a [Loop] and never blocks: what the other side does not accept is queued.
// Lines of one batch are written with one write. The queue has no limit here: its user checks Pending.
type Sink struct {
	loop    *Loop
	opts    SinkOptions
	file    *os.File
	fd      int
	private bool // the descriptor is non-blocking: a raw system call on it returns at once
	pos     int  // index in the loop's poll set

	batch   [][]byte // of the present dispatch, not yet written
	own     []byte   // the bytes of batch that Send copied
	one     [1][]byte
	queue   []chunk // not accepted by the kernel so far
	pending int     // bytes in queue
	written uint64  // bytes the kernel has accepted
	dirty   bool    // in the loop's flush list
	dead    bool
	closing bool // closed once the queue is empty
	done    bool
}

// chunk is a piece of the queue; hold is the buffer with its data.
type chunk struct {
	data []byte
	hold *Hold
	own  bool // nobody else has the buffer: more can be appended to data
}

// FD is the descriptor that is written to.
func (k *Sink) FD() int { return k.fd }

var newline = []byte{'\n'}

// Forward queues a line of the source that is being dispatched, with its newline, without copying it. A single line
// is written at once, so that the other side need not wait for what the caller does afterwards.
func (k *Sink) Forward(line []byte) {
	if cap(line) > len(line) && line[:len(line)+1][len(line)] == '\n' {
		line = line[:len(line)+1]
		k.put(line[k.writeAlone(line):])
		return
	}
	k.put(line)
	k.put(newline)
}

// Send queues a copy of line with a newline.
func (k *Sink) Send(line []byte) {
	start := len(k.own)
	if need := start + len(line) + 1; need > cap(k.own) && start > 0 {
		// Growing would move bytes that the batch refers to, so a new buffer is begun.
		k.own, start = make([]byte, 0, max(2*cap(k.own), need)), 0
	}
	k.own = append(append(k.own, line...), '\n')
	k.put(k.own[start:len(k.own):len(k.own)])
}

// writeAlone writes line if no other line precedes or follows it, and returns how many bytes were accepted. An error
// is left to the flush, because the caller is in the middle of a callback.
func (k *Sink) writeAlone(line []byte) int {
	src := k.loop.current
	if k.dead || len(k.queue) > 0 || len(k.batch) > 0 || len(line) > copyLimit || src == nil || src.r < src.w {
		return 0
	}
	k.one[0] = line
	n, err := k.loop.write(k, k.one[:])
	if err != nil {
		return 0
	}
	k.written += uint64(n)
	return n
}

// put adds p to the batch. If it follows the last piece in memory, that one is extended.
func (k *Sink) put(p []byte) {
	if k.done || len(p) == 0 {
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

// Pending returns how many bytes are queued and not yet accepted by the kernel.
func (k *Sink) Pending() int {
	n := k.pending
	for _, p := range k.batch {
		n += len(p)
	}
	return n
}

// Written returns how many bytes the kernel has accepted so far: it grows while the other side reads.
func (k *Sink) Written() uint64 { return k.written }

// Refused returns how many bytes the kernel has not accepted so far; unlike Pending it does not count the present
// batch.
func (k *Sink) Refused() int { return k.pending }

// flush writes the batch, or appends it to the queue.
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
	if cap(k.own) > readBuffer {
		k.own = nil
	}
	k.own = k.own[:0]
	if k.closing && len(k.queue) == 0 {
		k.shut()
	}
}

// writeBatch writes as much as the descriptor accepts and returns the rest.
func (k *Sink) writeBatch(batch [][]byte) [][]byte {
	for len(batch) > 0 {
		n, err := k.loop.write(k, batch)
		k.written += uint64(n)
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

// enqueue keeps p: a short piece as a copy, a long one by keeping the buffer of its source.
func (k *Sink) enqueue(p []byte) {
	k.pending += len(p)
	if k.dead {
		return // counted only: it can never be written
	}
	src := k.loop.current
	if len(p) <= copyLimit || src == nil || src.hold == nil || !within(p, src.hold.Bytes) {
		k.copyToQueue(p)
		return
	}
	k.queue = append(k.queue, chunk{data: p, hold: src.hold.Retain()})
}

// copyToQueue appends p to the last chunk if the chunk owns its data and has room.
func (k *Sink) copyToQueue(p []byte) {
	if n := len(k.queue); n > 0 {
		if last := &k.queue[n-1]; last.own && cap(last.data)-len(last.data) >= len(p) {
			last.data = append(last.data, p...)
			return
		}
	}
	h := k.loop.piece(len(p))
	k.queue = append(k.queue, chunk{data: append(h.Bytes[:0], p...), hold: h, own: true})
}

// within reports whether p lies in buf.
func within(p, buf []byte) bool {
	if len(p) == 0 || len(buf) == 0 {
		return false
	}
	// Slices of one array share the end of their capacity.
	return &p[:cap(p)][cap(p)-1] == &buf[:cap(buf)][cap(buf)-1]
}

// drain writes the queue; the loop calls it when the descriptor is writable again.
func (k *Sink) drain() {
	for len(k.queue) > 0 {
		c := &k.queue[0]
		k.one[0] = c.data
		n, err := k.loop.write(k, k.one[:])
		k.one[0] = nil // so that the buffer of a long line is not kept
		c.data = c.data[n:]
		k.pending -= n
		k.written += uint64(n)
		if err != nil {
			k.fail(err)
			return
		}
		if len(c.data) > 0 {
			return
		}
		c.hold.Release()
		k.queue[0] = chunk{}
		if len(k.queue) == 1 {
			k.queue = k.queue[:0]
		} else {
			k.queue = k.queue[1:]
		}
	}
	if k.closing {
		k.shut()
		return
	}
	if k.opts.OnDrain != nil {
		k.opts.OnDrain()
	}
}

// fail ends writing. The queue is dropped but remains counted, so that the owner knows what was not delivered.
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
		k.queue[i].hold.Release()
	}
	k.queue = nil
}

// CloseWhenDrained closes the descriptor as soon as the queue is empty (at once if it is).
func (k *Sink) CloseWhenDrained() {
	k.closing = true
	if len(k.queue) == 0 && !k.dirty {
		k.shut()
	}
}

// Close closes the descriptor; the queue is lost.
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
