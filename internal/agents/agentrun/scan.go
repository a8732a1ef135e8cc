package agentrun

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// heldLimit is the longest sequence that is examined as a whole, in bytes. Longer ones, such as pictures, say nothing
// that is needed, and pass unexamined.
const heldLimit = 8 << 10

// Control characters.
const (
	enq = 0x05 // asks a terminal for its name
	bel = 0x07
	can = 0x18 // breaks a sequence off, as SUB does
	sub = 0x1a
	esc = 0x1b
)

// pieceKind is the kind of a piece of output.
type pieceKind uint8

const (
	plain    pieceKind = iota // text without sequences
	order                     // a sequence, whole or broken off
	question                  // a whole sequence that terminals answer
	overlong                  // a part of a sequence over the limit
)

// piece is a part of an output: whole characters, or one sequence. Its bytes are valid until the next one.
type piece struct {
	kind  pieceKind
	bytes []byte
	sequence
}

// sequence is a control sequence, taken apart. The zero value is none.
type sequence struct {
	intro   byte   // the byte behind ESC
	content []byte // of a CSI sequence its parameters, of a string such as OSC its text
	final   byte   // the last byte: of a string BEL or the backslash of ST; 0: it was broken off
}

// scanner cuts an agent's output into pieces, however it comes. Only whole sequences and whole characters leave it, so
// that people can join between any two. It reads 7-bit control sequences: the bytes of 8-bit ones occur in UTF-8, ST
// even in the title of Claude Code, whose ✳ is E2 9C B3.
type scanner struct {
	held []byte // a sequence, or a character, that is incomplete
	long string // how the sequence began that goes on with held, when it is over the limit: that was handed on; "": it is not
}

// scan reads the next output and hands on its pieces.
func (f *scanner) scan(b []byte, each func(piece)) {
	if f.long != "" || len(f.held) > 0 {
		b = slices.Concat([]byte(f.long), f.held, b)
	}
	for len(b) > 0 {
		n := extent(b)
		if n == 0 {
			break
		}
		p := pieceOf(b[:n])
		if f.long != "" {
			p, f.long = piece{kind: overlong, bytes: b[len(f.long):n]}, ""
		}
		if len(p.bytes) > 0 {
			each(p)
		}
		b = b[n:]
	}
	if f.long != "" || len(b) > heldLimit { // an ESC at its end may begin another sequence: it stays
		end := len(bytes.TrimSuffix(b, []byte{esc}))
		if end > len(f.long) {
			each(piece{kind: overlong, bytes: b[len(f.long):end]})
		}
		f.long, b = string(b[:2]), b[end:]
	}
	f.held = append(f.held[:0], b...)
}

// extent is the length of the first piece: a sequence, or the text before the next one. 0: it has not come whole.
func extent(b []byte) int {
	switch b[0] {
	case enq:
		return 1
	case esc:
		return sequenceEnd(b)
	}
	end := len(b)
	for _, c := range []byte{esc, enq} {
		if at := bytes.IndexByte(b[:end], c); at >= 0 {
			end = at
		}
	}
	if end == len(b) {
		end -= unfinished(b)
	}
	return end
}

// unfinished is how many bytes at the end begin a character that has not come whole.
func unfinished(b []byte) int {
	for n := 1; n <= min(3, len(b)); n++ {
		if utf8.RuneStart(b[len(b)-n]) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// sequenceEnd is the length of the sequence that b begins with; 0: it has not ended. One that is broken off by another
// one's ESC ends before that.
func sequenceEnd(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	at, isText := 2, false
	ends := func(byte) bool { return false }
	switch b[1] {
	case '[':
		ends = func(c byte) bool { return c >= 0x40 }
	case ']':
		isText, ends = true, func(c byte) bool { return c == bel }
	case 'P', 'X', '^', '_':
		isText = true
	default:
		at, ends = 1, func(c byte) bool { return c < 0x20 || c >= 0x30 }
	}
	for ; at < len(b); at++ {
		switch c := b[at]; {
		case c == esc && isText && at+1 == len(b):
			return 0 // it may be that of ST
		case c == esc && isText && b[at+1] == '\\':
			return at + 2
		case c == esc:
			return at
		case c == can, c == sub, ends(c):
			return at + 1
		}
	}
	return 0
}

// pieceOf is the piece of whole characters, or of one sequence.
func pieceOf(b []byte) piece {
	switch {
	case b[0] == enq:
		return piece{kind: question, bytes: b}
	case b[0] != esc:
		return piece{kind: plain, bytes: b}
	case len(b) > heldLimit:
		return piece{kind: overlong, bytes: b}
	}
	p := piece{kind: order, bytes: b, sequence: apart(b)}
	if _, asks := p.reply(place{}); asks {
		p.kind = question
	}
	return p
}

func apart(b []byte) (q sequence) {
	if len(b) < 2 {
		return q
	}
	q.intro = b[1]
	end := len(b) - 1
	last := b[end]
	switch q.intro {
	case '[':
		if end > 1 && last >= 0x40 && last < 0x7f {
			q.content, q.final = withoutControls(b[2:end]), last
		}
	case ']', 'P', 'X', '^', '_':
		switch {
		case last == bel && q.intro == ']':
			q.content, q.final = b[2:end], last
		case last == '\\' && b[end-1] == esc:
			q.content, q.final = b[2:end-1], last
		}
	default:
		q.final = last
	}
	return q
}

// withoutControls are the parameters of a CSI sequence: control characters in it are obeyed, and are none of it.
func withoutControls(b []byte) []byte {
	isControl := func(c rune) bool { return c < 0x20 }
	if bytes.IndexFunc(b, isControl) < 0 {
		return b
	}
	return bytes.Map(func(c rune) rune {
		if isControl(c) {
			return -1
		}
		return c
	}, b)
}

// otherScreen reports whether the sequence switches to a program's own screen, or back.
func (q sequence) otherScreen() bool {
	if q.intro != '[' || q.final != 'h' && q.final != 'l' {
		return false
	}
	switch string(q.content) {
	case "?1049", "?1047", "?47":
		return true
	}
	return false
}
