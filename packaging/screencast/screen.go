package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// screen is what a terminal shows that gets texts, line ends and carriage returns: the demo uses nothing else.
type screen struct {
	lines []string // at least one once something was written
	col   int
	rest  []byte // of a character that has not come whole
}

// write draws what came. Another control character is an error: the picture would not be what a terminal shows.
func (s *screen) write(b []byte) error {
	text := append(s.rest, b...)
	if s.lines == nil {
		s.lines = []string{""}
	}
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		switch {
		case r == '\n':
			s.lines = append(s.lines, "")
		case r == '\r':
			s.col = 0
		case r < ' ' || r == 0x7f:
			return fmt.Errorf("the terminal got the control character %q, which a recording does not know", r)
		default:
			s.put(r)
		}
	}
	s.rest = slices.Clone(text)
	return nil
}

func (s *screen) put(r rune) {
	last := []rune(s.lines[len(s.lines)-1])
	for len(last) <= s.col {
		last = append(last, ' ')
	}
	last[s.col] = r
	s.col++
	s.lines[len(s.lines)-1] = string(last)
}

// shown are the lines without blanks at their ends.
func (s *screen) shown() []string {
	all := slices.Clone(s.lines)
	for i := range all {
		all[i] = strings.TrimRight(all[i], " ")
	}
	return all
}

// asks reports a shell that waits for its next command, with more than so many lines on the screen.
func (s *screen) asks(lines int) bool {
	return len(s.lines) > lines && strings.TrimRight(s.lines[len(s.lines)-1], " ")+" " == prompt
}
