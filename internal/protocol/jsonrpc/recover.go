package jsonrpc

import "bytes"

// RecoverID finds the id of a line that is invalid or too long to be kept: head are its first bytes, tail its last;
// they may overlap, and for a short line both are the whole line. The id is a part of head or tail.
//
// It is taken from head if it is there at the top level, before the first invalid text. Otherwise, if head is valid
// but incomplete, it is taken from the last members before the brace that ends tail. For valid JSON that is exact,
// however much is missing between head and tail. It never returns an id inside a nested object or a string, nor null,
// nor one that is cut off or is an object or array.
func RecoverID(head, tail []byte) ([]byte, bool) {
	// White space at the end of head is kept: it shows that the number before it is complete.
	h := headReader{text: trimBOM(head)}
	id, end := h.read()
	switch {
	case id != nil:
		return id, true
	case end != endCut || bytes.Equal(head, tail):
		return nil, false
	}
	id = tailID(trimSpace(tail))
	return id, id != nil
}

// FirstOf is the first of these names that the top level of a message has; "": none. head are its first bytes: the member's value may
// be cut off, and what is behind it is not looked at. It does not allocate.
func FirstOf(head []byte, names ...string) string {
	head = trimBOM(head)
	start := skipSpace(head, 0)
	if start >= len(head) || head[start] != '{' {
		return ""
	}
	c := openCursor(head, start, 0)
	for c.member() {
		for _, name := range names {
			if c.keyIs(name) {
				return name
			}
		}
		if !c.skip() {
			return ""
		}
	}
	return ""
}

// ending says how reading a head ended.
type ending uint8

const (
	endCut    ending = iota // valid up to the end
	endClosed               // the message was complete
	endBroken               // its depth is not reliable any more, or the id cannot be answered
)

// headReader reads the beginning of a line and is less strict than skip: a value may be any word (NaN), and strings
// may contain anything. It is strict where an error would make it lose track of the depth: brackets must match, and
// strings must be where JSON allows them, so that a stray quote ends the reading instead of exchanging text inside
// and outside of strings.
type headReader struct {
	text  []byte
	kinds [spillWords]uint64 // one bit for each open level, 1 for an object
	depth int
	prev  byte // the previous token: a structural byte, bareword or quote
	isID  bool // the member being read is the top level's id
}

// Values of prev besides the structural bytes themselves.
const (
	bareword = 'w'
	quote    = '"'
)

const cutOff = -2 // the text ends in the middle of a string or word

// read returns the id if it finds one, otherwise how the text ended.
func (h *headReader) read() ([]byte, ending) {
	h.prev = ':' // the message itself is at the place of a value
	for i := skipSpace(h.text, 0); i < len(h.text); i = skipSpace(h.text, i) {
		c, sound := h.text[i], true
		switch c {
		case '{', '[':
			sound = h.push(c)
		case '}', ']':
			sound = h.pop(c)
		case ':':
			sound = h.prev == quote
		case ',':
			sound = !h.isID
		default:
			end := h.scalar(i)
			switch {
			case end == cutOff:
				return nil, endCut
			case end == broken || h.depth == 0:
				return nil, endBroken
			case h.isID:
				return answerable(h.text[i:end])
			}
			h.key(i, end)
			if c != quote {
				c = bareword
			}
			i = end - 1
		}
		if !sound {
			return nil, endBroken
		}
		if h.depth == 0 {
			return nil, endClosed
		}
		h.prev = c
		i++
	}
	return nil, endCut
}

// push opens a level; a container is allowed only in the place of a value.
func (h *headReader) push(c byte) bool {
	if h.isID || !h.valueMayCome() || h.depth == maxDepth || h.depth == 0 && c != '{' {
		return false
	}
	bit := uint64(1) << (h.depth & 63)
	h.kinds[h.depth>>6] &^= bit
	if c == '{' {
		h.kinds[h.depth>>6] |= bit
	}
	h.depth++
	return true
}

func (h *headReader) inObject() bool {
	return h.depth > 0 && h.kinds[(h.depth-1)>>6]>>((h.depth-1)&63)&1 == 1
}

func (h *headReader) pop(c byte) bool {
	if h.depth == 0 || h.inObject() != (c == '}') || h.isID {
		return false
	}
	h.depth--
	return true
}

func (h *headReader) valueMayCome() bool {
	return h.prev == ':' || h.prev == '[' || h.prev == ',' && !h.inObject()
}

// scalar reads a string or a word at i and returns the offset after it, cutOff or broken.
func (h *headReader) scalar(i int) int {
	if h.text[i] == quote {
		return h.quoted(i)
	}
	end := i
	for end < len(h.text) && isWord(h.text[end]) {
		end++
	}
	switch {
	case end == i || !h.valueMayCome():
		return broken
	case end == len(h.text):
		return cutOff // it may continue after the cut
	}
	return end
}

func (h *headReader) quoted(i int) int {
	if !h.valueMayCome() && h.prev != '{' && h.prev != ',' {
		return broken
	}
	for i++; i < len(h.text) && h.text[i] != quote; i++ {
		if h.text[i] == '\\' {
			i++
		}
	}
	if i >= len(h.text) {
		return cutOff
	}
	switch first(h.text[i+1:]) {
	case 0, ',', ':', '}', ']':
		return i + 1
	}
	return broken
}

// key records whether the string just read is the key of the top level's id.
func (h *headReader) key(start, end int) {
	if h.prev != ':' {
		h.isID = h.depth == 1 && h.inObject() && EqualString(h.text[start:end], "id")
	}
}

func isWord(c byte) bool {
	switch c {
	case '"', '{', '}', '[', ']', ',', ':', '\\':
		return false
	}
	return c > ' '
}

// answerable returns the raw value if an answer can carry it as its id.
func answerable(raw []byte) ([]byte, ending) {
	end := broken
	if raw[0] == quote {
		end, _ = scanString(raw, 1)
	} else if raw[0] != 'n' {
		end = scanScalar(raw, 0)
	}
	if end != len(raw) {
		return nil, endBroken
	}
	return raw[:end:end], endCut
}
