package fileerror

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/files/secret"
)

// Pos is a position in a file. Line and Column count from 1; columns are characters. The zero Pos is the file as a
// whole.
type Pos struct{ Line, Column int }

// Problem is one mistake, or one warning.
type Problem struct {
	Pos     Pos
	Message string // what is wrong
	Hint    string // what to do about it; may be empty
	Secret  bool   // the line is not shown, because it contains a secret, such as an address with its token
}

// Problems are all mistakes of a file, in the order of the file, as an error. [Source.Problems] makes one.
type Problems struct {
	List   []Problem
	source *Source
}

// mostShown is how many mistakes [Problems.Error] lists: a file of another kind has thousands.
const mostShown = 100

// Error lists the mistakes as file:line:column: message, with the line and a caret below; of very many only the first
// 100.
func (p *Problems) Error() string {
	var parts []string
	for i, one := range p.List {
		if i == mostShown {
			parts = append(parts, fmt.Sprintf("%s: %d more", p.source.Name, len(p.List)-i))
			break
		}
		parts = append(parts, p.source.Render(one))
	}
	return strings.Join(parts, "\n")
}

// Problems makes a [*Problems] error of a list; nil if the list is empty.
func (s *Source) Problems(list []Problem) error {
	if len(list) == 0 {
		return nil
	}
	return &Problems{List: InOrder(list), source: s}
}

// InOrder sorts by position and removes duplicates: the target of a YAML alias is checked for each of its uses.
func InOrder(list []Problem) []Problem {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return slices.Compact(list)
}

// Render formats a problem: file:line:column: message: hint, and below it the line and a caret, unless the line is
// empty or secret.
func (s *Source) Render(p Problem) string {
	text, _ := s.hidden(p.Message, 0)
	if p.Hint != "" {
		hint, _ := s.hidden(p.Hint, 0)
		text += ": " + hint
	}
	text = printable(text)
	if p.Pos.Line == 0 || p.Pos.Line > len(s.starts) {
		return s.Name + ": " + text
	}
	text = fmt.Sprintf("%s:%d:%d: %s", s.Name, p.Pos.Line, p.Pos.Column, text)
	shown, caret := excerpt(s.hidden(s.Line(p.Pos.Line), p.Pos.Column-1))
	if shown == "" || p.Secret {
		return text
	}
	return text + "\n    " + shown + "\n    " + caret
}

// hidden replaces the parts of a text that are not shown, and returns the column, in characters, in the new text. A
// column within such a part is moved to its beginning.
func (s *Source) hidden(text string, column int) (shown string, at int) {
	if s.Hide == nil {
		return text, column
	}
	var b strings.Builder
	end, at := 0, column
	for _, part := range s.Hide(text) {
		b.WriteString(text[end:part.Start])
		b.WriteString(secret.Hidden)
		end = part.End
		start, length := utf8.RuneCountInString(text[:part.Start]), utf8.RuneCountInString(text[part.Start:part.End])
		switch {
		case column >= start+length:
			at += len(secret.Hidden) - length
		case column > start:
			at -= column - start
		}
	}
	b.WriteString(text[end:])
	return b.String(), at
}

// widest is how many characters of a line are shown: a minified file is one line.
const widest = 100

// excerpt returns a line, and a second one with a caret below the column. Both are empty for an empty line.
func excerpt(text string, column int) (shown, caret string) {
	if strings.TrimSpace(text) == "" {
		return "", ""
	}
	line := []rune(text)
	column = min(max(column, 0), len(line))
	before, after := "", ""
	if start := column - widest/2; len(line) > widest && start > 0 {
		line, column, before = line[start:], column-start, "… "
	}
	if len(line) > widest {
		line, after = line[:widest], " …"
	}
	var under strings.Builder
	for _, c := range before + string(line[:column]) {
		if c != '\t' { // a tab is kept, so that the caret is aligned
			c = ' '
		}
		under.WriteRune(c)
	}
	return before + strings.TrimRight(printable(string(line)), " \t") + after, under.String() + "^"
}

// printable removes characters that move a terminal's cursor or reverse text. Tabs are kept, because the caret's
// position depends on them.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return '·'
	}, s)
}
