package agentrun

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func drawn(rows, cols int, output string) *screen {
	s := newScreen(rows, cols)
	s.show(output)
	return s
}

func (s *screen) show(output string) {
	var f scanner
	f.scan([]byte(output), s.draw)
}

// Whoever joins sees what those see who were there all the time: characters, colours, the place of the cursor.
func TestPaint(t *testing.T) {
	for name, output := range map[string]string{
		"text":            "one\r\ntwo",
		"colours":         "\x1b[1;31mred \x1b[38;5;208morange \x1b[22;48;2;1;2;3mback\x1b[0m plain\r\n\x1b[4:3mcurly\x1b[4:0m not\x1b[7m",
		"erased in blue":  "abc\x1b[44m\x1b[K\r\n\x1b[0mx",
		"a moved cursor":  "one\r\ntwo\x1b[2;2H",
		"a scrolled part": "\x1b[2;3rhead\r\na\r\nb\r\nc",
		"the other one":   "shell\r\n\x1b[?1049hagent\x1b[?1049l$ ",
		"wide characters": "✅ 日本\x1b[44m漢\x1b[0m|\x1b[2;5H日\x1b[3;23Hab日c",
		"cut":             "0123456789012345678901234567890",
		"a full line":     "\x1b[31m0123456789012345678901\x1b[32m23\x1b[0m",
		"a full wide one": "0123456789012345678901\x1b[44m日\x1b[1m",
	} {
		t.Run(name, func(t *testing.T) {
			first := drawn(5, 24, output)
			second := drawn(5, 24, "what was there before\x1b[5;5Hand here"+string(first.paint(5, 24)))
			if diff := cmp.Diff(first.lines(), second.lines()); diff != "" {
				t.Error(diff)
			}
			for i := range first.cells {
				for j := range first.cells[i] {
					a, b := first.cells[i][j].look(), second.cells[i][j].look()
					if a != b {
						t.Fatalf("row %d, column %d: %+v became %+v", i, j, a, b)
					}
				}
			}
			if first.pen != second.pen || first.row != second.row || first.col != second.col || first.top != second.top || first.bottom != second.bottom {
				t.Errorf("cursor, pen or margins: %v %v %v, became %v %v %v", first.row, first.col, first.pen, second.row, second.col, second.pen)
			}
			if first.wrap != second.wrap {
				t.Errorf("the next character begins a line: %v, became %v", first.wrap, second.wrap)
			}
		})
	}
}

// Wide characters take two cells, what joins one before takes none, as terminals have it.
func TestWideCharacters(t *testing.T) {
	for output, want := range map[string]string{
		"│ ✅ done │\x1b[1;11HX":         "│ ✅ done X",
		"日本|\x1b[1;5HX":                 "日本X",
		"日本\x1b[1;2HX":                  " X本",
		"日本\x1b[1;3HX":                  "日X",
		"日本x\x1b[1;4H\x1b[K":            "日",
		"日本x\x1b[1;2H\x1b[P":            " 本x",
		"日本x\x1b[1;2H\x1b[@":            "   本x",
		"123456789012\x1b[1;11H\x1b[9P": "1234567890",
		"日本x\x1b[1;3H\x1b[1K":           "    x",
		"123456789012345日本":             "123456789012345",
		"e\u0301|a\u200db\x1b[1;4HX":    "e|aX",
		"1234567890123456\r漢\x1b[5@":    "漢     345678901",
	} {
		s := drawn(2, 16, output)
		if got := s.lines()[0]; got != want {
			t.Errorf("%q shows %q, want %q", output, got, want)
		}
	}
	s := drawn(1, 3, "a日\r\x1b[P\x1b[1;2Hx")
	if diff := cmp.Diff([]string{" x"}, s.lines()); diff != "" {
		t.Error(diff)
	}
	s = drawn(1, 4, "ab日")
	s.resize(1, 3)
	if diff := cmp.Diff([]string{"ab"}, s.lines()); diff != "" {
		t.Error(diff)
	}
}

// Whatever is drawn, a wide character is there with both of its cells, or not at all.
func TestWideCharactersAreWhole(t *testing.T) {
	words := []string{"日", "a", "✅", "\r", "\n", "\b", "\x1b[3G", "\x1b[2@", "\x1b[P", "\x1b[K", "\x1b[1K", "\x1b[3X", "\x1b[2D", "\x1b[C", "\x1b[L"}
	rapid.Check(t, func(t *rapid.T) {
		s := drawn(2, rapid.IntRange(2, 9).Draw(t, "columns"), strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "output"), ""))
		s.resize(2, rapid.IntRange(2, 9).Draw(t, "columns then"))
		for _, line := range s.cells {
			for i, c := range line {
				first := c.char != behind && width(c.char) == 2
				second := i+1 < len(line) && line[i+1].char == behind
				if first != second {
					t.Fatalf("%q: column %d of %v", s.lines(), i, line)
				}
			}
		}
	})
}

// Programs of ncurses write a run of one character once, and say how often: TERM=xterm-256color has that (REP).
func TestRepeatedCharacters(t *testing.T) {
	for output, want := range map[string]string{
		"=\x1b[9b|":               "==========|",
		"-\x1b[b\x1b[0b|":         "---|",
		"日\x1b[2bx":               "日日日x",
		"\x1b[5bx":                "x",
		"a\x1b[999999999b\x1b[Hb": "baaaaaaaaaaaaaaa",
	} {
		if got := drawn(2, 16, output).lines()[0]; got != want {
			t.Errorf("%q shows %q, want %q", output, got, want)
		}
	}
}

// A smaller terminal is shown as much as it has room for.
func TestPaintInASmallWindow(t *testing.T) {
	first := drawn(4, 20, "\x1b[1;1Hone two three\x1b[4;1Hdown")
	second := drawn(2, 7, string(first.paint(2, 7)))
	if diff := cmp.Diff([]string{"one two", ""}, second.lines()); diff != "" {
		t.Error(diff)
	}
	first = drawn(4, 20, "\x1b[1;1Hone two three\x1b[4;1H01234567890123456789")
	second = drawn(2, 20, string(first.paint(2, 20)))
	if diff := cmp.Diff([]string{"one two three", ""}, second.lines()); diff != "" {
		t.Error(diff)
	}
}

func TestScreenIsResized(t *testing.T) {
	s := drawn(4, 10, "a\r\nb\r\nc\r\nd")
	s.resize(2, 10)
	if diff := cmp.Diff([]string{"c", "d"}, s.lines()); diff != "" {
		t.Error(diff)
	}
	s.resize(3, 4)
	s.show("\r\nefgh")
	if diff := cmp.Diff([]string{"c", "d", "efgh"}, s.lines()); diff != "" {
		t.Error(diff)
	}
	s = drawn(4, 10, "shell\r\n$ \x1b[?1049hagent")
	s.resize(2, 3)
	s.show("\x1b[?1049l!")
	if diff := cmp.Diff([]string{"she", "$ !"}, s.lines()); diff != "" {
		t.Error(diff)
	}
}

// What an agent may ask of a terminal that nobody looks at.
func TestAnswers(t *testing.T) {
	s := drawn(24, 80, "one\r\ntwo")
	for text, want := range map[string]string{
		"\x1b[6n": "\x1b[2;4R", "\x1b[5n": "\x1b[0n", "\x1b[c": "\x1b[?62;22c", "\x1b[0c": "\x1b[?62;22c", "\x1b[18t": "\x1b[8;24;80t",
		"\x1b[?2026$p": "\x1b[?2026;0$y", "\x1b[?u": "", "\x05": "", "\x1b]11;?\x07": "\x1b]11;rgb:1010/1010/1010\x07",
		"\x1b]10;?\x1b\\": "\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\", "\x1b]4;1;?\x07": "", "\x1bP+q544e\x1b\\": "\x1bP0+r\x1b\\", "\x1b[>q": "\x1bP>|outlive\x1b\\",
	} {
		var f scanner
		asked := 0
		f.scan([]byte(text), func(p piece) {
			if asked++; p.kind != question {
				t.Errorf("%q is not a question", text)
			}
			if got, _ := p.reply(s.place()); got != want {
				t.Errorf("%q is answered with %q, want %q", text, got, want)
			}
		})
		if asked != 1 {
			t.Errorf("%q is %d pieces", text, asked)
		}
	}
}
