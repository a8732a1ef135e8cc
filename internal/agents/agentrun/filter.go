package agentrun

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// heldLimit is the longest sequence that is examined as a whole, in bytes. Longer ones, such as pictures, are no queries
// and pass unexamined.
const heldLimit = 8 << 10

// enq asks a terminal for its name.
const enq = 0x05

// filter removes the agent's queries to its terminal from the output, such as for the cursor or colours: with several
// terminals, or none, we must give the one answer. It forwards whole sequences and whole characters only, so that people
// can join between any two pieces.
type filter struct {
	held []byte    // a sequence, or a character, that is incomplete
	in   scanState // in which sequence; ground: none
	long bool      // it is over the limit, and passes unexamined
}

// scan reads the next piece of output. pass gets the output; drawn is false for pieces of a long sequence, which shows
// no text. asked gets each whole query.
func (f *filter) scan(b []byte, pass func(b []byte, drawn bool), asked func(question []byte)) {
	for len(b) > 0 {
		if f.in == ground {
			b = f.text(b, pass, asked)
			continue
		}
		n, ended, broken := f.sequence(b)
		f.held = append(f.held, b[:n]...)
		b = b[n:]
		if broken {
			f.breakOff(pass)
			continue
		}
		switch {
		case f.long:
			pass(f.held, false)
			f.held = f.held[:0]
		case ended && isQuestion(f.held):
			asked(bytes.Clone(f.held))
			f.held = f.held[:0]
		case ended:
			pass(f.held, true)
			f.held = f.held[:0]
		case len(f.held) > heldLimit:
			f.long = true
		}
		if ended {
			f.in, f.long = ground, false
		}
	}
}

// breakOff passes on a sequence that was interrupted by another one, whose ESC may have been read already.
func (f *filter) breakOff(pass func([]byte, bool)) {
	begun := f.in == commandES || f.in == blindES
	if begun {
		f.held = f.held[:len(f.held)-1]
	}
	pass(f.held, !f.long)
	f.held, f.in, f.long = f.held[:0], ground, false
	if begun {
		f.held, f.in = append(f.held, esc), escape
	}
}

// text passes on everything up to the next sequence, and returns what follows its ESC.
func (f *filter) text(b []byte, pass func([]byte, bool), asked func([]byte)) (rest []byte) {
	if len(f.held) > 0 { // the rest of a character
		for len(b) > 0 && !utf8.FullRune(f.held) && !utf8.RuneStart(b[0]) {
			f.held, b = append(f.held, b[0]), b[1:]
		}
		if !utf8.FullRune(f.held) && len(b) == 0 {
			return nil
		}
		pass(f.held, true)
		f.held = f.held[:0]
	}
	end := bytes.IndexAny(b, "\x1b\x05")
	if end < 0 {
		end = len(b) - unfinished(b)
		f.held = append(f.held, b[end:]...)
	} else if rest = b[end+1:]; b[end] == enq {
		defer asked([]byte{enq})
	} else {
		f.in = escape
		f.held = append(f.held, esc)
	}
	if end > 0 {
		pass(b[:end], true)
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
func (f *filter) sequence(b []byte) (n int, ended, broken bool) {
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

// isQuestion reports whether a sequence is a query that terminals answer.
func isQuestion(s []byte) bool {
	if len(s) < 2 {
		return false
	}
	content, last := s[2:], s[len(s)-1]
	switch s[1] {
	case 'Z':
		return true
	case '[':
		parameters := string(content[:len(content)-1])
		switch last {
		case 'c':
			return true
		case 'n':
			return !strings.HasPrefix(parameters, ">")
		case 'q':
			return strings.HasPrefix(parameters, ">")
		case 'u':
			return strings.HasPrefix(parameters, "?")
		case 'p':
			return strings.HasSuffix(parameters, "$")
		case 'x':
			return parameters == "" || parameters == "0" || parameters == "1"
		case 't':
			number, _, _ := strings.Cut(parameters, ";")
			return number == "11" || len(number) == 2 && number >= "13" && number <= "21" && number != "17"
		}
	case ']':
		text := strings.TrimSuffix(strings.TrimRight(string(content), "\a\\"), "\x1b")
		return strings.HasSuffix(text, ";?") || strings.Contains(text, ";?;")
	case 'P':
		return bytes.HasPrefix(content, []byte("+q")) || bytes.HasPrefix(content, []byte("$q"))
	case '_':
		control, _, _ := strings.Cut(string(content), ";")
		return strings.HasPrefix(control, "G") && strings.Contains(control, "a=q")
	}
	return false
}
