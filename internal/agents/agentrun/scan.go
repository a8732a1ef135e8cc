package agentrun

import (
	"bytes"
	"strings"
)

// signKind is the kind of a control sequence.
type signKind uint8

const (
	titleSign  signKind = iota // text is the terminal's new title (OSC 0 or 2)
	bellSign                   // BEL
	noticeSign                 // text is a notification's (OSC 9, 99 or 777)
	modeSign                   // text is the sequence's parameters with its final byte: a terminal's mode
)

// sign is a control sequence of interest.
type sign struct {
	kind signKind
	text string
}

// Limits of the kept part of a sequence: longer ones, such as a picture or the clipboard, are not needed.
const (
	oscLimit = 4 << 10
	csiLimit = 64
)

// Control characters.
const (
	bel = 0x07
	can = 0x18 // breaks a sequence off, as SUB does
	sub = 0x1a
	esc = 0x1b
)

// scanState is where in a sequence the scanner is.
type scanState uint8

const (
	ground    scanState = iota
	escape              // ESC was the last
	control             // in a CSI sequence
	command             // in an OSC
	commandES           // in an OSC, ESC was the last
	blind               // in a string that is ignored: DCS, SOS, PM, APC
	blindES             // in one, ESC was the last
)

// escapes finds signs in an agent's output, however it is split. It reads 7-bit control sequences: the bytes of 8-bit
// ones occur in UTF-8.
type escapes struct {
	state scanState
	held  []byte // of the sequence, up to its limit
	long  bool   // the sequence is over its limit
}

// scan reads the next piece and hands on each sign that ends in it.
func (e *escapes) scan(b []byte, emit func(sign)) {
	for len(b) > 0 {
		if e.state == ground {
			b = e.text(b, emit)
			continue
		}
		if e.state == command || e.state == blind {
			if n := plain(b); n > 0 {
				e.keep(b[:n], oscLimit)
				b = b[n:]
				continue
			}
		}
		e.step(b[0], emit)
		b = b[1:]
	}
}

// text emits the bells before the next sequence and returns what follows its ESC.
func (e *escapes) text(b []byte, emit func(sign)) (rest []byte) {
	end := bytes.IndexByte(b, esc)
	if end < 0 {
		end = len(b)
	} else {
		e.state, rest = escape, b[end+1:]
	}
	for b = b[:end]; ; {
		i := bytes.IndexByte(b, bel)
		if i < 0 {
			return rest
		}
		emit(sign{kind: bellSign})
		b = b[i+1:]
	}
}

// plain is how many bytes certainly belong to a string.
func plain(b []byte) int {
	for i, c := range b {
		if c == esc || c == bel || c == can || c == sub {
			return i
		}
	}
	return len(b)
}

func (e *escapes) keep(b []byte, limit int) {
	if e.state == blind || e.long {
		return
	}
	if e.long = len(e.held)+len(b) > limit; !e.long {
		e.held = append(e.held, b...)
	}
}

// step takes one byte of a sequence.
func (e *escapes) step(c byte, emit func(sign)) {
	switch e.state {
	case escape:
		e.open(c, emit)
	case control:
		e.parameter(c, emit)
	case command, blind:
		switch {
		case c == esc && e.state == command:
			e.state = commandES
		case c == esc:
			e.state = blindES
		case c == bel && e.state == command:
			e.close(emit)
		case c == can, c == sub:
			e.reset(ground)
		default: // a BEL inside of a DCS is part of it
		}
	case commandES:
		if c == '\\' {
			e.close(emit)
			return
		}
		e.reset(escape) // broken off by another sequence
		e.open(c, emit)
	case blindES:
		if c == '\\' {
			e.reset(ground)
			return
		}
		e.reset(escape)
		e.open(c, emit)
	}
}

// open takes the byte behind an ESC.
func (e *escapes) open(c byte, emit func(sign)) {
	switch {
	case c == '[':
		e.reset(control)
	case c == ']':
		e.reset(command)
	case strings.IndexByte("PX^_", c) >= 0:
		e.reset(blind)
	case c == esc:
		e.reset(escape)
	case c == bel:
		emit(sign{kind: bellSign})
	case 0x20 <= c && c < 0x30: // an intermediate: the final byte is still to come
	default:
		e.reset(ground)
	}
}

// parameter takes a byte of a CSI sequence.
func (e *escapes) parameter(c byte, emit func(sign)) {
	switch {
	case c == esc:
		e.reset(escape)
	case c == can, c == sub:
		e.reset(ground)
	case c == bel: // obeyed in the middle of a sequence, as all control characters are
		emit(sign{kind: bellSign})
	case c < 0x20:
	case c < 0x40:
		e.keep([]byte{c}, csiLimit)
	default:
		if !e.long && len(e.held) > 0 && strings.IndexByte("hlum", c) >= 0 && strings.IndexByte("?<>", e.held[0]) >= 0 {
			emit(sign{modeSign, string(e.held) + string(rune(c))})
		}
		e.reset(ground)
	}
}

// close ends an OSC.
func (e *escapes) close(emit func(sign)) {
	number, text, _ := strings.Cut(string(e.held), ";")
	if e.long {
		number = ""
	}
	e.reset(ground)
	switch number {
	case "0", "2":
		emit(sign{titleSign, text})
	case "9":
		// 9;4 is a progress bar, and 9;1 to 9;12 are ConEmu's other commands.
		if word, _, more := strings.Cut(text, ";"); !more || word == "" || len(word) > 2 || strings.Trim(word, "0123456789") != "" {
			emit(sign{noticeSign, text})
		}
	case "99":
		if _, text, ok := strings.Cut(text, ";"); ok && text != "" {
			emit(sign{noticeSign, text})
		}
	case "777":
		if text, ok := strings.CutPrefix(text, "notify;"); ok {
			emit(sign{noticeSign, strings.ReplaceAll(text, ";", ": ")})
		}
	}
}

func (e *escapes) reset(to scanState) {
	e.state, e.held, e.long = to, e.held[:0], false
}
