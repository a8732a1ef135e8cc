package lineloop

// ShareLimit is the longest line, in bytes, that is copied to be kept; a longer one is kept in the buffer that
// it was read into.
const ShareLimit = readBuffer

// Hold is a buffer with one or more owners; see [Hold.Retain].
type Hold struct {
	Bytes  []byte // len is at least the size asked for
	owners int
	home   *freeList // takes it back for reuse; nil: nobody does
}

// HoldCopy returns a hold with a copy of line, and one owner.
func HoldCopy(line []byte) *Hold {
	return &Hold{Bytes: append([]byte(nil), line...), owners: 1}
}

// Shared reports whether somebody else owns the buffer, too: then it must not be written to any more.
func (h *Hold) Shared() bool { return h.owners > 1 }

// Retain adds an owner, who calls Release for himself.
func (h *Hold) Retain() *Hold {
	h.owners++
	return h
}

// Release ends one ownership; the last one gives the buffer back. Releasing a nil hold does nothing.
func (h *Hold) Release() {
	if h == nil || h.owners == 0 {
		return
	}
	if h.owners--; h.owners == 0 && h.home != nil {
		h.home.put(h)
	}
}
