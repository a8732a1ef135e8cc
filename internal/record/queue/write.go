package queue

import "bytes"

// pieceSize is how many bytes are written at once. Each accepted piece shows that the destination is read, so a piece
// is not larger than what a pipe accepts at once.
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
		piece := p[n:min(len(p), n+pieceSize)]
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
