package agentcli

import (
	"fmt"
	"hash"
	"hash/fnv"
)

const (
	endKept     = 32 << 10 // bytes that are kept of each end of a long text,
	endOutlined = 128      // and of one in an outline: every id and every type is shorter
	outlined    = 1 << 20  // size of a shortened line from which only an outline is kept
	outlineMost = 4 << 20  // and its maximum size
	outlineDeep = 6        // levels of an outline: ids and types are at most this deep
	deepest     = 1000     // levels that are followed
)

// abridger shortens a record while it is read, so that a line of any length needs little memory. All names, ids and
// types are kept. Long texts, such as pictures, lose their middle: a digest of it takes its place, so that different
// texts stay different.
type abridger struct {
	out     []byte
	open    []level
	valued  bool // a name and its colon were written: a value follows
	literal bool // within a number or a word
	dropped int  // open levels that are left out
	invalid bool // it is not a record
	large   bool // it has too many parts even for an outline

	inText bool
	muted  bool   // the text, number or word is left out
	escape []byte // the beginning of an escape sequence
	most   int    // bytes that are kept of each end
	head   int    // bytes that were kept of the beginning
	last   [2][]byte
	lost   int64 // bytes of the middle
	middle hash.Hash64
}

// level is an open object or array.
type level struct{ array, begun bool }

// record returns the shortened record. Without one, large says whether the reason is only its size.
func (a *abridger) record() (text []byte, large bool) {
	if a.invalid || a.large || a.inText || len(a.open) > 0 {
		return nil, a.large && !a.invalid
	}
	return a.out, false
}

// write takes the next part of the line.
func (a *abridger) write(part []byte) {
	for len(part) > 0 && !a.invalid && !a.large {
		if a.inText {
			part = part[a.readText(part):]
			continue
		}
		a.token(part[0])
		part = part[1:]
		if len(a.out) > outlineMost {
			a.large, a.out = true, nil
		}
	}
}

// outlines reports whether so much was kept already that an outline has to do.
func (a *abridger) outlines() bool { return len(a.out) >= outlined }

func (a *abridger) inArray() bool { return len(a.open) > 0 && a.open[len(a.open)-1].array }

func (a *abridger) token(c byte) {
	literal := false
	switch c {
	case ' ', '\t', '\r', '\n', ',': // each element writes the comma before it
	case '"':
		a.beginText()
	case '{', '[':
		a.begin(c)
	case '}', ']':
		a.end(c)
	case ':':
		if a.dropped == 0 {
			a.out, a.valued = append(a.out, ':'), true
		}
	default:
		literal = true
		a.word(c)
	}
	a.literal = literal
}

// next writes the comma before an element, unless it is the first one or the value of a name.
func (a *abridger) next() {
	if n := len(a.open); n == 0 {
		a.invalid = true // every record is an object
	} else if !a.valued {
		if a.open[n-1].begun {
			a.out = append(a.out, ',')
		}
		a.open[n-1].begun = true
	}
	a.valued = false
}

// word takes a byte of a number, or of true, false or null.
func (a *abridger) word(c byte) {
	if c <= ' ' || c >= 0x7f {
		a.invalid = true
		return
	}
	if !a.literal {
		if a.muted = a.dropped > 0 || a.outlines() && a.inArray(); !a.muted {
			a.next()
		}
	}
	if !a.muted {
		a.out = append(a.out, c)
	}
}

func (a *abridger) begin(c byte) {
	if a.dropped > 0 || a.outlines() && len(a.open) >= outlineDeep {
		if a.dropped == 0 && a.valued {
			a.out, a.valued = append(a.out, "null"...), false
		}
		a.dropped++
		return
	}
	if len(a.open) > 0 || c == '[' || len(a.out) > 0 {
		a.next()
	}
	a.open = append(a.open, level{array: c == '['})
	a.out = append(a.out, c)
	a.large = a.large || len(a.open) > deepest
}

func (a *abridger) end(c byte) {
	if a.dropped > 0 {
		a.dropped--
		return
	}
	if len(a.open) == 0 {
		a.invalid = true
		return
	}
	a.open = a.open[:len(a.open)-1]
	a.out = append(a.out, c)
}

func (a *abridger) beginText() {
	a.inText = true
	if a.muted = a.dropped > 0 || a.outlines() && a.inArray(); a.muted {
		return
	}
	a.next()
	a.out = append(a.out, '"')
	a.most, a.head, a.lost, a.middle = endKept, 0, 0, nil
	if a.outlines() {
		a.most = endOutlined
	}
}

// readText takes what belongs to the text and returns its length.
func (a *abridger) readText(part []byte) int {
	if len(a.escape) > 0 {
		a.escape = append(a.escape, part[0])
		if len(a.escape) == 6 || len(a.escape) == 2 && part[0] != 'u' {
			a.keep(a.escape, true)
			a.escape = a.escape[:0]
		}
		return 1
	}
	n := 0
	for n < len(part) && part[n] != '"' && part[n] != '\\' {
		n++
	}
	a.keep(part[:n], false)
	switch {
	case n == len(part):
		return n
	case part[n] == '"':
		a.endText()
	default:
		a.escape = append(a.escape, '\\')
	}
	return n + 1
}

// keep takes a part of the text. An escape sequence is whole: it is not divided.
func (a *abridger) keep(part []byte, whole bool) {
	if a.muted {
		return
	}
	if room := a.most - a.head; room > 0 {
		n := len(part)
		if !whole {
			n = min(n, room)
		}
		a.out = append(a.out, part[:n]...)
		a.head += n
		part = part[n:]
	}
	for len(part) > 0 {
		n := len(part)
		if !whole {
			n = min(n, a.most-len(a.last[1]))
		}
		a.last[1] = append(a.last[1], part[:n]...)
		part = part[n:]
		if len(a.last[1]) >= a.most {
			a.lose(a.last[0])
			a.last[0], a.last[1] = a.last[1], a.last[0][:0]
		}
	}
}

// lose leaves out a part of the middle.
func (a *abridger) lose(part []byte) {
	if len(part) == 0 {
		return
	}
	if a.middle == nil {
		a.middle = fnv.New64a()
	}
	_, _ = a.middle.Write(part) // a hash never fails
	a.lost += int64(len(part))
}

func (a *abridger) endText() {
	a.inText = false
	if a.muted {
		return
	}
	if a.lost > 0 {
		a.out = fmt.Appendf(a.out, " … (%d bytes, digest %x) … ", a.lost, a.middle.Sum64())
	}
	a.out = append(append(append(a.out, a.last[0]...), a.last[1]...), '"')
	a.last[0], a.last[1] = a.last[0][:0], a.last[1][:0]
}
