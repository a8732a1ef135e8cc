package fileerror

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/files/secret"
)

// Source is a file's text. It converts offsets to lines and columns.
type Source struct {
	Name string // the file's name in messages
	Text []byte

	// Hide returns the parts of a text, in order, that are not shown in messages and lines: secrets. nil: none.
	Hide func(text string) []secret.Span

	starts []int // offsets of the lines

	// The last position that was looked up. Parsers report positions in the order of the file, and a minified file is
	// one long line.
	lastOffset, lastColumn int
	lastLine, lastWidth    int // the last line that was measured
}

// NewSource finds the lines of a text, which must not be changed afterwards.
func NewSource(name string, text []byte) *Source {
	s := &Source{Name: name, Text: text, starts: []int{0}, lastColumn: 1}
	for i, c := range text {
		if c == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	return s
}

// Line returns line n, counted from 1, without its line break, LF or CRLF; "" if there is none.
func (s *Source) Line(n int) string {
	if n < 1 || n > len(s.starts) {
		return ""
	}
	rest := s.Text[s.starts[n-1]:]
	if n < len(s.starts) {
		rest = s.Text[s.starts[n-1] : s.starts[n]-1]
	}
	return string(bytes.TrimSuffix(rest, []byte{'\r'}))
}

// At converts an offset in bytes to a Pos.
func (s *Source) At(offset int) Pos {
	offset = min(max(offset, 0), len(s.Text))
	n, exact := slices.BinarySearch(s.starts, offset)
	if !exact {
		n--
	}
	from, column := s.starts[n], 1
	if from <= s.lastOffset && s.lastOffset <= offset {
		from, column = s.lastOffset, s.lastColumn
	}
	column += utf8.RuneCount(s.Text[from:offset])
	s.lastOffset, s.lastColumn = offset, column
	return Pos{n + 1, column}
}

// Offset converts a Pos to an offset in bytes, which is within its line.
func (s *Source) Offset(pos Pos) int {
	pos = s.Inside(pos)
	line := s.Line(pos.Line)
	for i := range line {
		if pos.Column--; pos.Column == 0 {
			return s.starts[pos.Line-1] + i
		}
	}
	return s.starts[pos.Line-1] + len(line)
}

// AtBytes converts the position of a parser that counts columns in bytes.
func (s *Source) AtBytes(line, column int) Pos {
	if line < 1 || line > len(s.starts) {
		return s.Inside(Pos{line, column})
	}
	return s.Inside(s.At(s.starts[line-1] + min(max(column-1, 0), len(s.Line(line)))))
}

// Inside moves a Pos into the file: parsers report the end of the input after the last line.
func (s *Source) Inside(pos Pos) Pos {
	last := len(s.starts)
	if last > 1 && s.starts[last-1] == len(s.Text) { // after the last line break
		last--
	}
	if pos.Line > last {
		return Pos{last, s.width(last) + 1}
	}
	pos.Line = max(pos.Line, 1)
	return Pos{pos.Line, min(max(pos.Column, 1), s.width(pos.Line)+1)}
}

// width is the number of characters of line n.
func (s *Source) width(n int) int {
	if n != s.lastLine {
		s.lastLine, s.lastWidth = n, utf8.RuneCountInString(s.Line(n))
	}
	return s.lastWidth
}
