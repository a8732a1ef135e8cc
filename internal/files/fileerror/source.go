package fileerror

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Source is a file's text, in which offsets become lines and columns.
type Source struct {
	Name string // what messages call the file
	Text []byte

	// Hide returns the parts of a text, in bytes and in order, that are not shown in messages and lines: secrets. nil: none.
	Hide func(text string) [][2]int

	starts []int // offsets of the lines

	// The last place that was looked up. Parsers ask in the order of the file, and a minified file is one long line.
	lastOffset, lastColumn int
	lastLine, lastWidth    int // the last line that was measured
}

// NewSource looks where the lines of a text begin. The text belongs to the Source from now on.
func NewSource(name string, text []byte) *Source {
	s := &Source{Name: name, Text: text, starts: []int{0}, lastColumn: 1}
	for i, c := range text {
		if c == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	return s
}

// Line gives line n, counted from 1, without its end, which is LF or CRLF; "" where there is none.
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

// At turns an offset in bytes into a Pos.
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

// Offset turns a Pos into an offset in bytes, which is within its line.
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

// AtBytes is a Pos from a parser that counts columns in bytes.
func (s *Source) AtBytes(line, column int) Pos {
	if line < 1 || line > len(s.starts) {
		return s.Inside(Pos{line, column})
	}
	return s.Inside(s.At(s.starts[line-1] + min(max(column-1, 0), len(s.Line(line)))))
}

// Inside moves a Pos into the file: parsers put the end of the input behind the last line.
func (s *Source) Inside(pos Pos) Pos {
	last := len(s.starts)
	if last > 1 && s.starts[last-1] == len(s.Text) { // behind the last line's end
		last--
	}
	if pos.Line > last {
		return Pos{last, s.width(last) + 1}
	}
	pos.Line = max(pos.Line, 1)
	return Pos{pos.Line, min(max(pos.Column, 1), s.width(pos.Line)+1)}
}

// width is how many characters line n has.
func (s *Source) width(n int) int {
	if n != s.lastLine {
		s.lastLine, s.lastWidth = n, utf8.RuneCountInString(s.Line(n))
	}
	return s.lastWidth
}
