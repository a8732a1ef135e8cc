package wire

import (
	"bytes"
	"os"
)

const (
	// readBuffer is the size of a source's resting buffer, in bytes. Untouched pages of it cost nothing.
	readBuffer = 256 << 10
	// tailKept is how much of the end of an over-long line is kept, in bytes: enough for the members that follow
	// the last big value (TypeScript servers write the id last).
	tailKept = 4 << 10
	// longLine is the length, in bytes, from which on lines deserve bigger pipes.
	longLine = 32 << 10
	// headKept is how much of its beginning is kept, in bytes.
	headKept = 64 << 10
)

// SourceOptions say what happens with what a descriptor delivers. All callbacks run on the loop's goroutine.
type SourceOptions struct {
	// Limit is the longest line in bytes without its newline; 0 means no limit.
	Limit int
	// OnLine gets one line without its newline. The bytes are valid until the callback returns, and, for a sink's
	// Forward, until the loop has flushed. whole is false for a last line that was ended by EOF.
	OnLine func(line []byte, whole bool)
	// OnOversize gets the first and last bytes of a line over the limit, and its length, once its end was seen.
	OnOversize func(head, tail []byte, size int64)
	// OnBatch is called after the lines of one read were handed out, before the sinks are flushed.
	OnBatch func()
	// OnEOF is called once: nothing will come any more. err is nil for a plain end of file.
	OnEOF func(err error)
	// Gate, when set, is asked before each wait; false leaves the bytes in the kernel (back-pressure).
	Gate func() bool
}

// Source reads lines from one descriptor of a [Loop].
type Source struct {
	loop    *Loop
	opts    SourceOptions
	file    *os.File
	fd      int
	private bool // the descriptor is non-blocking: a raw system call on it returns at once
	pos     int  // index in the loop's poll set

	hold    *Hold
	r, w    int // unread bytes are hold.Bytes[r:w]
	scanned int // no newline before this index
	small   int // reads in a row that would have fitted the resting buffer

	over     *oversize
	enlarged bool // the pipes of this source were made bigger, or could not be

	done bool
}

// oversize collects the two ends of a line that is too long to keep.
type oversize struct {
	head []byte
	tail []byte
	size int64
}

// room returns where the next read may write.
func (s *Source) room() []byte {
	if s.hold == nil {
		s.hold = s.loop.buffers.take()
	}
	return s.hold.Bytes[s.w:]
}

// took accounts n bytes read into room and hands out the lines they complete.
func (s *Source) took(n int) {
	s.w += n
	if s.w-s.r > dropStep {
		s.hold.Drop(s.r, s.w) // what a long line has brought so far is not needed until its end
	}
	s.begin()
	for !s.done && s.nextLine() {
	}
	s.end()
	s.makeRoom()
}

func (s *Source) begin() { s.loop.current = s }

// end flushes the sinks that the callbacks of one read have filled. Until then the sinks may hold slices of our
// buffer, so a source that is closed on the way keeps it to the end.
func (s *Source) end() {
	if s.opts.OnBatch != nil && !s.done {
		s.opts.OnBatch()
	}
	s.loop.Flush()
	s.loop.current = nil
	if s.done {
		s.hold.Release()
		s.hold = nil
	}
}

// nextLine hands out one line and reports whether there may be another.
func (s *Source) nextLine() bool {
	buf := s.hold.Bytes
	i := bytes.IndexByte(buf[s.scanned:s.w], '\n')
	if i < 0 {
		s.scanned = s.w
		s.checkLimit()
		return false
	}
	end := s.scanned + i
	line := buf[s.r:end]
	s.r, s.scanned = end+1, end+1
	if len(line) > longLine && !s.enlarged {
		s.enlarged = true
		s.loop.enlargePipes(s)
	}
	switch {
	case s.over != nil:
		s.endOversize(line)
	case s.opts.Limit > 0 && len(line) > s.opts.Limit:
		s.startOversize(line)
		s.endOversize(nil)
	default:
		s.opts.OnLine(line, true)
	}
	return true
}

// checkLimit switches to discarding when the unfinished line is over the limit.
func (s *Source) checkLimit() {
	part := s.hold.Bytes[s.r:s.w]
	switch {
	case s.over != nil:
		s.over.add(part)
	case s.opts.Limit > 0 && len(part) > s.opts.Limit:
		s.startOversize(part)
	default:
		return
	}
	s.r, s.w, s.scanned = 0, 0, 0
}

func (s *Source) startOversize(part []byte) {
	s.over = &oversize{head: bytes.Clone(part[:min(len(part), headKept)])}
	s.over.add(part)
}

func (s *Source) endOversize(rest []byte) {
	o := s.over
	s.over = nil
	o.add(rest)
	if s.opts.OnOversize != nil {
		s.opts.OnOversize(o.head, o.tail, o.size)
	}
}

func (o *oversize) add(part []byte) {
	o.size += int64(len(part))
	if len(part) >= tailKept {
		o.tail = append(o.tail[:0], part[len(part)-tailKept:]...)
		return
	}
	o.tail = append(o.tail, part...)
	if extra := len(o.tail) - tailKept; extra > 0 {
		o.tail = append(o.tail[:0], o.tail[extra:]...)
	}
}

// makeRoom prepares the buffer for the next read: back to the start when empty, moved or grown when a line is long.
func (s *Source) makeRoom() {
	if s.hold == nil {
		return
	}
	if s.hold.Shared() {
		s.detach().Release()
		return
	}
	size := len(s.hold.Bytes)
	used := s.w - s.r
	if used == 0 {
		s.r, s.w, s.scanned = 0, 0, 0
		s.shrink()
		return
	}
	if s.w < size && (s.r == 0 || size-s.w >= size/4) {
		return
	}
	if s.r > 0 && used <= size/2 {
		s.scanned -= s.r
		copy(s.hold.Bytes, s.hold.Bytes[s.r:s.w])
		s.r, s.w = 0, used
		return
	}
	s.grow(2 * size)
}

// bigger returns a buffer of at least size bytes.
func (l *Loop) bigger(size int) *Hold {
	if size > HeapLimit {
		return l.long.takeLong(size)
	}
	return NewHold(size)
}

func (s *Source) grow(size int) {
	if most := s.opts.Limit + readBuffer; s.opts.Limit > 0 && (size > HeapLimit || size > most) {
		size = most // a mapped buffer costs its address space only, and grows once
	}
	bigger := s.loop.bigger(size)
	used := copy(bigger.Bytes, s.hold.Bytes[s.r:s.w])
	s.scanned -= s.r
	s.r, s.w = 0, used
	s.hold.Release()
	s.hold = bigger
}

// shrink gives a grown buffer back: a mapped one at once, one in memory after a run of small reads.
func (s *Source) shrink() {
	if len(s.hold.Bytes) <= readBuffer {
		return
	}
	s.small++
	if s.hold.Mapped() || s.small > 64 {
		s.hold.Release()
		s.hold = nil
		s.small = 0
	}
}

// detach hands the buffer over to a sink that still has to write parts of it; unread bytes move to a new one.
func (s *Source) detach() *Hold {
	old := s.hold
	rest := old.Bytes[s.r:s.w]
	if len(rest) <= readBuffer/2 {
		s.hold = s.loop.buffers.take()
	} else {
		s.hold = NewHold(len(rest) + readBuffer)
	}
	s.scanned -= s.r
	s.r, s.w = 0, copy(s.hold.Bytes, rest)
	return old
}

// finish hands out a last line without newline and tells the end.
func (s *Source) finish(err error) {
	if s.done {
		return
	}
	s.begin()
	s.lastLine()
	s.end()
	if s.done {
		return
	}
	onEOF := s.opts.OnEOF
	s.Close()
	if onEOF != nil {
		onEOF(err)
	}
}

func (s *Source) lastLine() {
	switch {
	case s.over != nil:
		s.endOversize(nil)
	case s.hold != nil && s.w > s.r:
		rest := s.hold.Bytes[s.r:s.w]
		s.r = s.w
		s.opts.OnLine(rest, false)
	}
}

// Close stops reading and closes the descriptor. No callback follows.
func (s *Source) Close() {
	if s.done {
		return
	}
	s.done = true
	s.loop.removeSource(s)
	if s.loop.current != s {
		s.hold.Release()
		s.hold = nil
	}
}
