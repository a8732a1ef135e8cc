package wire

// HeapLimit is the largest buffer, in bytes, kept in ordinary memory; longer lines live in a mapped file.
const HeapLimit = 1 << 20

// Hold is a buffer for one line that may be too long for memory: ordinary memory up to [HeapLimit], a mapped,
// already unlinked file above it. If no file can be had (full disk, no mapping on this system) it is memory after all:
// serving goes on.
type Hold struct {
	Bytes  []byte // len is the capacity asked for
	unmap  func([]byte)
	mapped bool
}

// NewHold returns a buffer of size bytes. Release it when done.
func NewHold(size int) *Hold {
	if size > HeapLimit {
		if b, unmap, err := mapSpool(size); err == nil {
			return &Hold{Bytes: b, unmap: unmap, mapped: true}
		}
	}
	return &Hold{Bytes: make([]byte, size)}
}

// HoldCopy returns a hold with a copy of line.
func HoldCopy(line []byte) *Hold {
	h := NewHold(len(line))
	copy(h.Bytes, line)
	return h
}

// Mapped reports whether the bytes are outside private memory.
func (h *Hold) Mapped() bool { return h.mapped }

// Release gives the buffer back. Neither h nor its bytes may be used afterwards. Releasing a nil hold does nothing.
func (h *Hold) Release() {
	if h == nil || h.Bytes == nil {
		return
	}
	if h.unmap != nil {
		h.unmap(h.Bytes)
	}
	h.Bytes = nil
}
