package fileerror

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestRender(t *testing.T) {
	long := strings.Repeat("a", 80) + "X" + strings.Repeat("b", 80)
	for _, tc := range []struct {
		name, text string
		problem    Problem
		want       string
	}{
		{"with a caret", "a: 1\nbc: 2\n", Problem{Pos: Pos{2, 5}, Message: "too small", Hint: "want 3"}, "f:2:5: too small: want 3\n    bc: 2\n        ^"},
		{"without a hint", "a: 1", Problem{Pos: Pos{1, 1}, Message: "odd"}, "f:1:1: odd\n    a: 1\n    ^"},
		{"of the whole file", "a: 1", Problem{Message: "odd"}, "f: odd"},
		{"of a line that is not there", "a: 1", Problem{Pos: Pos{7, 1}, Message: "odd"}, "f: odd"},
		{"of an empty line", "a: 1\n  \n", Problem{Pos: Pos{2, 1}, Message: "odd"}, "f:2:1: odd"},
		{"of a secret line", "https://token@host", Problem{Pos: Pos{1, 1}, Message: "odd", Secret: true}, "f:1:1: odd"},
		{"behind the end of its line", "ab", Problem{Pos: Pos{1, 9}, Message: "odd"}, "f:1:9: odd\n    ab\n      ^"},
		{"below tabs", "\t\ta", Problem{Pos: Pos{1, 3}, Message: "odd"}, "f:1:3: odd\n    \t\ta\n    \t\t^"},
		{"with CRLF", "a\r\nb\r\n", Problem{Pos: Pos{2, 1}, Message: "odd"}, "f:2:1: odd\n    b\n    ^"},
		{"after wide characters", "äöü: 1", Problem{Pos: Pos{1, 6}, Message: "odd"}, "f:1:6: odd\n    äöü: 1\n         ^"},
		{"with what a terminal obeys", "a\x1b[2Jb", Problem{Pos: Pos{1, 1}, Message: "not \x1b[31m\n\u202eodd", Hint: "\rno"}, "f:1:1: not ·[31m··odd: ·no\n    a·[2Jb\n    ^"},
		{"in the middle of a long line", long, Problem{Pos: Pos{1, 81}, Message: "odd"},
			"f:1:81: odd\n    … " + strings.Repeat("a", 50) + "X" + strings.Repeat("b", 49) + " …\n    " + strings.Repeat(" ", 52) + "^"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, NewSource("f", []byte(tc.text)).Render(tc.problem)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// All mistakes come as one error, in the order of the file, each once.
func TestProblems(t *testing.T) {
	s := NewSource("f", []byte("ab\ncd\n"))
	if err := s.Problems(nil); err != nil {
		t.Errorf("an error without a mistake: %v", err)
	}
	second, first := Problem{Pos: Pos{2, 1}, Message: "second"}, Problem{Pos: Pos{1, 2}, Message: "first"}
	given := []Problem{second, first, second, {Message: "whole"}}
	err := s.Problems(given)
	var problems *Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %v", err)
	}
	if diff := cmp.Diff([]Problem{{Message: "whole"}, first, second}, problems.List); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("f: whole\nf:1:2: first\n    ab\n     ^\nf:2:1: second\n    cd\n    ^", err.Error()); diff != "" {
		t.Errorf("the text (-want +got):\n%s", diff)
	}
	if given[0] != second {
		t.Error("the caller's own list was put into another order")
	}
}

// Of thousands of mistakes only the first are listed.
func TestManyProblems(t *testing.T) {
	var list []Problem
	for i := range 1234 {
		list = append(list, Problem{Message: fmt.Sprint("odd ", i)})
	}
	text := NewSource("f", nil).Problems(list).Error()
	if lines := strings.Count(text, "\n") + 1; lines != mostShown+1 || !strings.HasSuffix(text, "f: 1134 more") {
		t.Errorf("%d lines, the last: %s", lines, text[strings.LastIndex(text, "\n")+1:])
	}
}

// Whatever a file contains, and whatever position a parser reports: the position is inside the file, and the output
// has no more lines than it should, and no terminal control characters.
func FuzzRender(f *testing.F) {
	f.Add("a: 1\n\tb\r\n", 2, 1, 3, "wrong")
	f.Add("\x1b[2J", 1, 99, -1, "a\nb")
	f.Add("", 0, 0, 0, "")
	f.Fuzz(func(t *testing.T, text string, line, column, offset int, message string) {
		s := NewSource("f", []byte(text))
		lines := strings.Split(text, "\n")
		for _, pos := range []Pos{s.Inside(Pos{line, column}), s.AtBytes(line, column), s.Inside(s.At(offset))} {
			if pos.Line < 1 || pos.Line > len(lines) || pos.Column < 1 || pos.Column > utf8.RuneCountInString(lines[pos.Line-1])+1 {
				t.Errorf("%v is outside %q", pos, text)
			}
			shown := s.Render(Problem{Pos: pos, Message: message, Hint: message})
			if strings.Count(shown, "\n") > 2 || strings.ContainsAny(shown, "\r\x1b\u202e") {
				t.Errorf("shows %q", shown)
			}
		}
	})
}
