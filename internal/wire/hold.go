package wire

// HeapLimit is the largest buffer, in bytes, kept in ordinary memory; longer lines live in a mapped file.
const HeapLimit = readBuffer

// dropStep is how many bytes of a mapped buffer may become resident before they are dropped again.
const dropStep = 256 << 10

// Hold is a buffer for one line that may be too long for memory: ordinary memory up to [HeapLimit], a mapped,
// already unlinked file above it. If no file can be had (full disk, no mapping on this system) it is memory after all:
// serving goes on. A hold has one or more owners; see [Hold.Retain].
type Hold struct {
	Bytes  []byte // len is the capacity asked for
	unmap  func([]byte)
	owners int
	home   *shelf // takes it back for reuse; nil: nobody does
}

// shelf keeps a few buffers of one size for reuse, so that a busy loop makes no garbage.
type shelf struct{ free []*Hold }

// shelfMost is how many buffers a shelf keeps.
const shelfMost = 3

// take returns a buffer of the resting size.
func (s *shelf) take() *Hold {
	if n := len(s.free); n > 0 {
		h := s.free[n-1]
		s.free = s.free[:n-1]
		h.owners = 1
		return h
	}
	h := NewHold(readBuffer)
	h.home = s
	return h
}

// takeLong returns a buffer of at least size bytes for a long line. Making a file costs more than using it, so the last
// one is kept, its pages out of memory.
func (s *shelf) takeLong(size int) *Hold {
	if n := len(s.free); n > 0 && len(s.free[n-1].Bytes) >= size {
		h := s.free[n-1]
		s.free = s.free[:n-1]
		h.owners = 1
		return h
	}
	h := NewHold(size)
	if h.Mapped() {
		h.home = s
	}
	return h
}

// room reports whether h is to be kept: a few small ones, one long one.
func (s *shelf) room(h *Hold) bool {
	if h.Mapped() {
		return len(s.free) == 0
	}
	return len(s.free) < shelfMost
}

// clear gives everything back.
func (s *shelf) clear() {
	for _, h := range s.free {
		h.home, h.owners = nil, 1
		h.Release()
	}
	s.free = nil
}

// NewHold returns a buffer of size bytes with one owner.
func NewHold(size int) *Hold {
	if size > HeapLimit {
		if b, unmap, err := mapSpool(size); err == nil {
			return &Hold{Bytes: b, unmap: unmap, owners: 1}
		}
	}
	return &Hold{Bytes: make([]byte, size), owners: 1}
}

// pieces keeps the buffers of finished chunks for the next ones.
type pieces struct{ free [][]byte }

// piecesMost is how many buffers of copyLimit bytes are kept.
const piecesMost = 8

func (s *pieces) take(size int) []byte {
	if n := len(s.free); n > 0 && size <= copyLimit {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, max(copyLimit, size))
}

func (s *pieces) put(b []byte) {
	if cap(b) == copyLimit && len(s.free) < piecesMost {
		s.free = append(s.free, b)
	}
}

// HoldCopy returns a hold with a copy of line.
func HoldCopy(line []byte) *Hold {
	h := NewHold(len(line))
	copy(h.Bytes, line)
	h.Drop(0, len(line))
	return h
}

// Mapped reports whether the bytes are outside private memory.
func (h *Hold) Mapped() bool { return h.unmap != nil }

// Shared reports whether somebody else owns the buffer, too: then it must not be written to any more.
func (h *Hold) Shared() bool { return h.owners > 1 }

// Retain adds an owner, who calls Release for himself.
func (h *Hold) Retain() *Hold {
	h.owners++
	return h
}

// Drop tells that the bytes from start to end will not be needed for a while: pages of a mapped buffer leave memory.
// They come back when touched.
func (h *Hold) Drop(start, end int) {
	if h.Mapped() {
		dropPages(h.Bytes, start, end)
	}
}

// Release ends one ownership; the last one gives the buffer back. Releasing a nil hold does nothing.
func (h *Hold) Release() {
	if h == nil || h.Bytes == nil {
		return
	}
	if h.owners--; h.owners > 0 {
		return
	}
	switch {
	case h.home != nil && h.home.room(h):
		h.Drop(0, len(h.Bytes))
		h.home.free = append(h.home.free, h)
		return
	case h.unmap != nil:
		h.unmap(h.Bytes)
	}
	h.Bytes = nil
}
