package fileerror

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// An offset is the same place however one comes to it: forwards, backwards, or on a Source that was never asked before.
func TestAt(t *testing.T) {
	text := "a: ä\r\n\n  ünï: x\nlast"
	s := NewSource("f", []byte(text))
	check := func(offset int) {
		t.Helper()
		before := text[:min(max(offset, 0), len(text))]
		want := Pos{strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:]) + 1}
		if got := s.At(offset); got != want {
			t.Errorf("offset %d: %v, want %v", offset, got, want)
		}
		if got := NewSource("f", []byte(text)).At(offset); got != want {
			t.Errorf("offset %d, asked first: %v, want %v", offset, got, want)
		}
	}
	for offset := -1; offset <= len(text)+1; offset++ {
		if offset < 0 || offset >= len(text) || utf8.RuneStart(text[offset]) {
			check(offset)
		}
	}
	for _, offset := range []int{len(text), 0, 14, 3, 6, 7} {
		check(offset)
	}
}

func TestPlaces(t *testing.T) {
	s := NewSource("f", []byte("a: ä b\r\nc\n"))
	for _, tc := range []struct {
		name      string
		got, want Pos
	}{
		{"columns in bytes", s.AtBytes(1, 7), Pos{1, 6}},
		{"bytes behind the line", s.AtBytes(1, 99), Pos{1, 7}},
		{"a line of bytes that is not there", s.AtBytes(9, 1), Pos{2, 2}},
		{"inside already", s.Inside(Pos{1, 4}), Pos{1, 4}},
		{"behind the last line's end", s.Inside(Pos{3, 1}), Pos{2, 2}},
		{"before the first", s.Inside(Pos{0, 0}), Pos{1, 1}},
		{"behind a line", s.Inside(Pos{2, 50}), Pos{2, 2}},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, tc.got, tc.want)
		}
	}
	for n, want := range []string{"", "a: ä b", "c", "", ""} {
		if got := s.Line(n); got != want {
			t.Errorf("line %d: %q, want %q", n, got, want)
		}
	}
}
