package lineloop

// ShareLimit is the length in bytes up to which a line that is kept is copied; a longer one is kept in the buffer
// that it was read into.
const ShareLimit = readBuffer

// Hold is a buffer with one or more owners; see [Hold.Retain].
type Hold struct {
	Bytes  []byte // len is at least the size asked for
	owners int
	home   *freeList // the list it returns to for reuse; nil: none
}

// HoldCopy returns a hold with a copy of line, and one owner.
func HoldCopy(line []byte) *Hold {
	return &Hold{Bytes: append([]byte(nil), line...), owners: 1}
}

// Shared reports whether the buffer has more than one owner; then it must not be written to any more.
func (h *Hold) Shared() bool { return h.owners > 1 }

// Retain adds an owner, who has to call Release.
func (h *Hold) Retain() *Hold {
	h.owners++
	return h
}

// Release removes an owner; the last one returns the buffer. Releasing a nil hold does nothing.
func (h *Hold) Release() {
	if h == nil || h.owners == 0 {
		return
	}
	if h.owners--; h.owners == 0 && h.home != nil {
		h.home.put(h)
	}
}
