package lineloop

import (
	"bytes"
	"os"
)

const (
	// readBuffer is the size of a source's resting buffer, in bytes. Pages of it that are not used cost nothing.
	readBuffer = 256 << 10
	// tailKept is how much of the end of an over-long line is kept, in bytes: enough for the members that follow
	// the last big value (TypeScript servers write the id last).
	tailKept = 4 << 10
	// longLine is the length in bytes from which on lines are worth enlarging the pipes.
	longLine = 32 << 10
	// growth is the factor by which the buffer grows when a line does not fit, up to fastGrowth bytes; then the
	// factor is two. The second step is to the largest size at once if that is directGrowth bytes at most.
	growth       = 8
	fastGrowth   = 16 << 20
	directGrowth = 64 << 20
	// headKept is how much of the beginning of an over-long line is kept, in bytes.
	headKept = 64 << 10
)

// SourceOptions are the callbacks of a source, and its limit. All callbacks run on the loop's goroutine.
type SourceOptions struct {
	// Limit is the longest line in bytes without its newline; 0 means no limit.
	Limit int
	// OnLine is called with one line without its newline. The bytes are valid until the callback returns, and, for a
	// sink's Forward, until the loop has flushed. whole is false for a last line that was ended by EOF.
	OnLine func(line []byte, whole bool)
	// OnOversize is called with the first and last bytes of a line over the limit, and its length, at its end.
	OnOversize func(head, tail []byte, size int64)
	// OnEOF is called once, at the end of the input. err is nil for a plain end of file.
	OnEOF func(err error)
	// Gate, if set, is called before each wait; false leaves the bytes in the kernel (back-pressure).
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

	over     *oversize
	enlarged bool // the pipes of this source were enlarged, or could not be

	done bool
}

// oversize collects the beginning and the end of a line that is too long to keep.
type oversize struct {
	head []byte
	tail []byte
	size int64
}

// Whole reports whether every byte that was read has been passed on, as part of a line.
func (s *Source) Whole() bool { return s.r == s.w && s.over == nil }

// FD is the descriptor that is read.
func (s *Source) FD() int { return s.fd }

// room returns where the next read may write.
func (s *Source) room() []byte {
	if s.hold == nil {
		s.hold = s.loop.bigger(readBuffer)
	}
	return s.hold.Bytes[s.w:]
}

// took handles n bytes that were read into room: it passes on the lines that they complete.
func (s *Source) took(n int) {
	s.w += n
	s.loop.current = s
	for !s.done && s.nextLine() {
	}
	s.end()
	s.makeRoom()
}

// end flushes the sinks that the callbacks of one read have filled. Until then the sinks may refer to our buffer, so
// a source that is closed in between keeps it.
func (s *Source) end() {
	s.loop.Flush()
	s.loop.current = nil
	if s.done {
		s.hold.Release()
		s.hold = nil
	}
}

// nextLine passes on one line and reports whether there may be another.
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

// makeRoom prepares the buffer for the next read: back to the start when empty, moved or grown when a line is long. An
// empty buffer is given back if other sources have as many as are kept for reuse: of many sources few are read at a time.
func (s *Source) makeRoom() {
	if s.hold == nil {
		return
	}
	size := len(s.hold.Bytes)
	used := s.w - s.r
	switch {
	case s.hold.Shared(): // others still write or keep parts of it
		room := readBuffer
		if used > readBuffer/2 {
			room += used
		}
		s.move(room).Release()
		return
	case used == 0:
		s.r, s.w, s.scanned = 0, 0, 0
		if size > readBuffer || s.loop.resting.out > restingMost {
			s.hold.Release()
			s.hold = nil
		}
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
	s.move(s.larger(size)).Release()
}

// larger is the size of the next buffer when one of size bytes is full. It is the size for the longest line at once,
// unless that is far more: unused memory costs nothing, while each step in between would leave another buffer.
func (s *Source) larger(size int) int {
	next := 2 * size
	if size < fastGrowth {
		next = growth * size
	}
	most := s.opts.Limit + readBuffer
	if s.opts.Limit > 0 && (next > most/2 || size > readBuffer && most <= directGrowth) {
		return most
	}
	return next
}

// move replaces the buffer by one of at least size bytes, copies the unread bytes, and returns the old one.
func (s *Source) move(size int) *Hold {
	old := s.hold
	s.hold = s.loop.bigger(size)
	s.scanned -= s.r
	s.r, s.w = 0, copy(s.hold.Bytes, old.Bytes[s.r:s.w])
	return old
}

// finish passes on a last line without newline and calls OnEOF.
func (s *Source) finish(err error) {
	if s.done {
		return
	}
	s.loop.current = s
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
