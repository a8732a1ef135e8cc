package agentrun

import (
	"bytes"
	"strings"
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

// scanState is where in a sequence the scanner is.
type scanState uint8

const (
	ground    scanState = iota
	escape              // ESC was the last
	control             // in a CSI sequence
	command             // in an OSC
	commandES           // in an OSC, ESC was the last
	blind               // in another string: DCS, SOS, PM, APC
	blindES             // in one, ESC was the last
)

// scanner cuts an agent's output into pieces, however it comes. Only whole sequences and whole characters leave it, so
// that people can join between any two. It reads 7-bit control sequences: the bytes of 8-bit ones occur in UTF-8, ST
// even in the title of Claude Code, whose ✳ is E2 9C B3.
type scanner struct {
	held []byte    // a sequence, or a character, that is incomplete
	in   scanState // in which sequence; ground: none
	long bool      // it is over the limit, and passes unexamined
}

// scan reads the next output and hands on its pieces.
func (f *scanner) scan(b []byte, each func(piece)) {
	for len(b) > 0 {
		if f.in == ground {
			b = f.text(b, each)
			continue
		}
		n, ended, broken := f.sequence(b)
		f.held = append(f.held, b[:n]...)
		b = b[n:]
		f.long = f.long || len(f.held) > heldLimit
		if broken {
			f.breakOff(each)
			continue
		}
		if ended {
			f.hand(each)
			f.in, f.long = ground, false
		} else if f.long {
			f.handBegun(each)
		}
	}
}

// hand passes on the sequence, or what has come of a long one.
func (f *scanner) hand(each func(piece)) {
	switch {
	case !f.long:
		each(whole(f.held))
	case len(f.held) > 0:
		each(piece{kind: overlong, bytes: f.held})
	}
	f.held = f.held[:0]
}

// handBegun passes on what has come of a long sequence that goes on. An ESC at its end may begin another one: it stays.
func (f *scanner) handBegun(each func(piece)) {
	if f.in != commandES && f.in != blindES {
		f.hand(each)
		return
	}
	f.held = f.held[:len(f.held)-1]
	f.hand(each)
	f.held = append(f.held, esc)
}

// breakOff passes on a sequence that was interrupted by another one, whose ESC may have been read already.
func (f *scanner) breakOff(each func(piece)) {
	begun := f.in == commandES || f.in == blindES
	if begun {
		f.held = f.held[:len(f.held)-1]
	}
	f.hand(each)
	f.in, f.long = ground, false
	if begun {
		f.held, f.in = append(f.held, esc), escape
	}
}

// text passes on everything up to the next sequence, and returns what follows its ESC.
func (f *scanner) text(b []byte, each func(piece)) (rest []byte) {
	if len(f.held) > 0 { // the rest of a character
		for len(b) > 0 && !utf8.FullRune(f.held) && !utf8.RuneStart(b[0]) {
			f.held, b = append(f.held, b[0]), b[1:]
		}
		if !utf8.FullRune(f.held) && len(b) == 0 {
			return nil
		}
		each(piece{bytes: f.held})
		f.held = f.held[:0]
	}
	end := bytes.IndexByte(b, esc)
	if end < 0 {
		end = len(b)
	}
	if at := bytes.IndexByte(b[:end], enq); at >= 0 {
		end = at
	}
	if end == len(b) {
		end -= unfinished(b)
		f.held = append(f.held, b[end:]...)
	} else if rest = b[end+1:]; b[end] == enq {
		defer each(piece{kind: question, bytes: []byte{enq}})
	} else {
		f.in = escape
		f.held = append(f.held, esc)
	}
	if end > 0 {
		each(piece{bytes: b[:end]})
	}
	return rest
}

// unfinished is how many bytes at the end begin a character that has not come whole.
func unfinished(b []byte) int {
	for n := 1; n <= min(3, len(b)); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c < utf8.RuneSelf || utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// sequence says how many of the next bytes belong to the sequence, and whether it ends with them. A broken one has been left
// by an ESC that begins another.
func (f *scanner) sequence(b []byte) (n int, ended, broken bool) {
	for i, c := range b {
		switch {
		case c == can, c == sub:
			return i + 1, true, false
		case f.in == escape:
			switch {
			case c == '[':
				f.in = control
			case c == ']':
				f.in = command
			case strings.IndexByte("PX^_", c) >= 0:
				f.in = blind
			case c == esc:
				return i, false, true
			case c < 0x20 || c >= 0x30:
				return i + 1, true, false
			}
		case f.in == control:
			if c == esc {
				return i, false, true
			}
			if c >= 0x40 {
				return i + 1, true, false
			}
		case f.in == commandES || f.in == blindES:
			if c == '\\' {
				return i + 1, true, false
			}
			return i, false, true
		case c == bel && f.in == command:
			return i + 1, true, false
		case c == esc:
			f.in++
		}
	}
	return len(b), false, false
}

// whole is the piece of a sequence that has ended.
func whole(b []byte) piece {
	p := piece{kind: order, bytes: b, sequence: apart(b)}
	if p.asks() {
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
