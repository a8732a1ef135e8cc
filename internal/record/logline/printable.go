package logline

import (
	"io"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// Printable formats a text for one line of a log or one cell of a table: what would end the line, control a terminal
// or reverse text is escaped as in Go, and bytes that are not UTF-8 become U+FFFD.
func Printable(text string) string { return string(appendPrintable(nil, text)) }

func appendPrintable(dst []byte, s string) []byte {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				dst = append(dst, "\uFFFD"...)
				continue
			}
		}
		dst = appendRune(dst, r)
	}
	return dst
}

// appendRune appends a character, or its escape if it must not reach a terminal.
func appendRune(dst []byte, r rune) []byte {
	if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
		q := strconv.QuoteRuneToASCII(r)
		return append(dst, q[1:len(q)-1]...)
	}
	return utf8.AppendRune(dst, r)
}

// screen passes text of several lines to a terminal.
type screen struct {
	to   io.Writer
	rest []byte // the beginning of a character, or a carriage return before a possible line feed
}

// NewScreen returns a writer that passes text to a terminal and escapes what would control it, like [Printable], but
// keeps line breaks and tabs. It is for one goroutine, and holds back at most the last three bytes until more is
// written.
func NewScreen(to io.Writer) io.Writer { return &screen{to: to} }

func (s *screen) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	out := make([]byte, 0, len(text))
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		if r == '\r' && len(text) == 1 {
			break
		}
		next := text[size:]
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, "\uFFFD"...)
		case r == '\n' || r == '\t':
			out = append(out, byte(r))
		case r == '\r' && next[0] == '\n': // a line break of some systems
		default:
			out = appendRune(out, r)
		}
		text = next
	}
	s.rest = append([]byte(nil), text...)
	if _, err := s.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
