package logline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// timeLayout is UTC, always six fraction digits (WD-14), so that every parser of WD-16 matches every line.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// appendText appends "[time] [TAG] text\n" (WD-14). Control characters in the text are escaped, so that the output of
// a server or a client can neither forge a line nor control a terminal.
func appendText(dst []byte, at time.Time, l line) []byte {
	dst = append(dst, '[')
	dst = at.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, "] ["...)
	dst = append(dst, l.tag...)
	dst = append(dst, "] "...)
	dst = appendPrintable(dst, l.text)
	return append(dst, '\n')
}

// appendJSON appends one object and a newline.
func appendJSON(dst []byte, e event.Event, l line) []byte {
	dst = append(dst, `{"time":"`...)
	dst = e.Time.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, `","level":"`...)
	dst = append(dst, e.Level.String()...)
	dst = append(dst, `","tag":"`...)
	dst = append(dst, l.tag...)
	dst = append(dst, `","msg":`...)
	dst = appendValue(dst, l.text)
	dst = append(dst, `,"event":`...)
	dst = appendValue(dst, string(e.Type))
	dst = append(dst, `,"generation":`...)
	dst = strconv.AppendInt(dst, int64(e.Generation), 10)
	dst = append(dst, `,"restart_count":`...)
	dst = strconv.AppendInt(dst, int64(e.RestartCount), 10)
	if e.ServerPID != 0 {
		dst = append(dst, `,"server_pid":`...)
		dst = strconv.AppendInt(dst, int64(e.ServerPID), 10)
	}
	for _, a := range e.Attrs {
		dst = append(dst, ',')
		dst = appendValue(dst, a.Key)
		dst = append(dst, ':')
		dst = appendValue(dst, a.Value.Any())
	}
	return append(dst, "}\n"...)
}

func appendValue(dst []byte, v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return appendValue(dst, fmt.Sprint(v))
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

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

// cutMark stands where a text was cut off.
const cutMark = "…"

// Head is the beginning of a text: whole characters, at most limit bytes. A mark stands for the rest.
func Head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit - len(cutMark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}

// Tail is the end of a text, like [Head].
func Tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := len(s) - limit + len(cutMark)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return cutMark + s[n:]
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
