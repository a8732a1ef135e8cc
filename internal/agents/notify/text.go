package notify

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text is a message: plain characters, some of which are bold. Nothing in it is markup, so nothing needs escaping.
type Text struct {
	Body string `json:"body"`
	Bold []Span `json:"bold,omitempty"` // in order, without overlaps
}

// Span is a part of a text, in bytes.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Write appends s as it is; bytes that are not UTF-8 become U+FFFD.
func (t *Text) Write(s string) { t.Body += strings.ToValidUTF8(s, "\uFFFD") }

// WriteBold appends s in bold.
func (t *Text) WriteBold(s string) {
	start := len(t.Body)
	t.Write(s)
	t.Bold = append(t.Bold, Span{start, len(t.Body)})
}

// WriteField appends a line with a name in bold and a value. An empty line is between the title, which is bold, and the first one.
func (t *Text) WriteField(name, value string) {
	if len(t.Bold) == 1 {
		t.Write("\n")
	}
	t.Write("\n")
	t.WriteBold(name + ":")
	t.Write(" " + value)
}

// units is the length of s as Telegram counts it: UTF-16 code units.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// Split cuts the text into parts of at most limit UTF-16 code units, at line ends if possible, otherwise between
// characters. No part is empty or begins or ends with white space; a blank text has none.
func (t Text) Split(limit int) []Text {
	var parts []Text
	for at := 0; at < len(t.Body); {
		end := at + cut(t.Body[at:], limit)
		if part := t.part(at, end); part.Body != "" {
			parts = append(parts, part)
		}
		at = end
	}
	return parts
}

// more ends a text that was cut.
const more = "…"

// Fit is the text without the white space around it, cut to at most limit UTF-16 code units. What was cut ends in "…".
func (t Text) Fit(limit int) Text {
	t = t.part(0, len(t.Body))
	if units(t.Body) <= limit {
		return t
	}
	t = t.part(0, within(t.Body, limit-units(more)))
	t.Body += more
	return t
}

// within is how many bytes of s are within a limit of UTF-16 code units.
func within(s string, limit int) int {
	n := 0
	for i, r := range s {
		if n += max(utf16.RuneLen(r), 1); n > limit {
			return i
		}
	}
	return len(s)
}

// cut is where the first part of s ends, in bytes.
func cut(s string, limit int) int {
	end := within(s, limit)
	newline := strings.LastIndexByte(s[:end], '\n')
	switch {
	case end == len(s):
		return end
	case newline >= 0:
		return newline + 1
	case end > 0:
		return end
	}
	_, size := utf8.DecodeRuneInString(s)
	return size // a limit that not even one character fits
}

// part is the text from start to end, without the white space around it.
func (t Text) part(start, end int) Text {
	s := t.Body[start:end]
	trimmed := strings.TrimSpace(s)
	start += strings.Index(s, trimmed)
	end = start + len(trimmed)
	p := Text{Body: trimmed}
	for _, b := range t.Bold {
		if from, to := max(b.Start, start), min(b.End, end); from < to {
			p.Bold = append(p.Bold, Span{from - start, to - start})
		}
	}
	return p
}
