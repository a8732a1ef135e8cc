package config

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// source is a file's text, in which offsets become lines and columns.
type source struct {
	name   string
	text   []byte
	starts []int // offsets of the lines

	// The last place that was looked up. Parsers ask in the order of the file, and a minified file is one long line.
	lastOffset, lastColumn int
}

func newSource(name string, text []byte) *source {
	s := &source{name: name, text: text, starts: []int{0}, lastColumn: 1}
	for i, c := range text {
		if c == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	return s
}

// line gives line n, counted from 1, without its end, which is LF or CRLF.
func (s *source) line(n int) string {
	if n < 1 || n > len(s.starts) {
		return ""
	}
	rest := s.text[s.starts[n-1]:]
	if n < len(s.starts) {
		rest = s.text[s.starts[n-1] : s.starts[n]-1]
	}
	return string(bytes.TrimSuffix(rest, []byte{'\r'}))
}

// at turns an offset in bytes into a Pos.
func (s *source) at(offset int) Pos {
	offset = min(max(offset, 0), len(s.text))
	n, exact := slices.BinarySearch(s.starts, offset)
	if !exact {
		n--
	}
	from, column := s.starts[n], 1
	if from <= s.lastOffset && s.lastOffset <= offset {
		from, column = s.lastOffset, s.lastColumn
	}
	column += utf8.RuneCount(s.text[from:offset])
	s.lastOffset, s.lastColumn = offset, column
	return Pos{n + 1, column}
}

// atBytes is a Pos from a parser that counts columns in bytes.
func (s *source) atBytes(line, column int) Pos {
	if line < 1 || line > len(s.starts) {
		return s.inside(Pos{line, column})
	}
	return s.inside(s.at(s.starts[line-1] + min(max(column-1, 0), len(s.line(line)))))
}

// inside moves a Pos into the file: parsers put the end of the input behind the last line.
func (s *source) inside(pos Pos) Pos {
	last := len(s.starts)
	if last > 1 && s.starts[last-1] == len(s.text) { // behind the last line's end
		last--
	}
	if pos.Line > last {
		return Pos{last, utf8.RuneCountInString(s.line(last)) + 1}
	}
	pos.Line = max(pos.Line, 1)
	return Pos{pos.Line, min(max(pos.Column, 1), utf8.RuneCountInString(s.line(pos.Line))+1)}
}
