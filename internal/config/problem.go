package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Pos is a place in a file. Line and Column count from 1; columns are characters. The zero Pos is the file as a whole.
type Pos struct{ Line, Column int }

// Problem is one mistake, or one warning.
type Problem struct {
	Pos     Pos
	Message string // what is wrong
	Hint    string // what to do about it; may be empty
}

// Problems are all mistakes of a file, in the order of the file. It is the error of [Load], [Parse] and [File.Err].
type Problems struct {
	List   []Problem
	source *source
}

// Error lists every mistake as file:line:column: message, with the line and a caret below.
func (p *Problems) Error() string {
	parts := make([]string, len(p.List))
	for i, problem := range p.List {
		parts[i] = p.source.render(problem)
	}
	return strings.Join(parts, "\n")
}

// Problem adds a mistake that was found after the file was read, such as a command that does not exist.
func (f *File) Problem(pos Pos, hint, format string, args ...any) {
	f.problems = append(f.problems, Problem{pos, printable(fmt.Sprintf(format, args...)), printable(hint)})
}

// Err returns all that was added by [File.Problem], as [*Problems], or nil.
func (f *File) Err() error {
	return f.source.problems(f.problems)
}

// Render shows a warning the way a mistake is shown.
func (f *File) Render(p Problem) string { return f.source.render(p) }

func (s *source) problems(list []Problem) error {
	if len(list) == 0 {
		return nil
	}
	return &Problems{List: inOrder(list), source: s}
}

// inOrder sorts by position and drops what is said twice: something behind a YAML alias is looked at for each of its uses.
func inOrder(list []Problem) []Problem {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return slices.Compact(list)
}

func (s *source) render(p Problem) string {
	text := p.Message
	if p.Hint != "" {
		text += ": " + p.Hint
	}
	if p.Pos.Line == 0 {
		return s.name + ": " + text
	}
	text = fmt.Sprintf("%s:%d:%d: %s", s.name, p.Pos.Line, p.Pos.Column, text)
	excerpt, caret := s.excerpt(p.Pos)
	if excerpt == "" {
		return text
	}
	return text + "\n    " + excerpt + "\n    " + caret
}

// widest is how much of a line is shown: minified files are one line.
const widest = 100

// excerpt gives the line of pos and a line with a caret below the column. Both are empty for an empty line.
func (s *source) excerpt(pos Pos) (excerpt, caret string) {
	line := []rune(s.line(pos.Line))
	column := min(pos.Column-1, len(line))
	before, after := "", ""
	if start := column - widest/2; len(line) > widest && start > 0 {
		line, column, before = line[start:], column-start, "… "
	}
	if len(line) > widest {
		line, after = line[:widest], " …"
	}
	var under strings.Builder
	for _, r := range before + string(line[:column]) {
		if r != '\t' { // a tab below a tab is as wide as it
			r = ' '
		}
		under.WriteRune(r)
	}
	for i, r := range line {
		if r != '\t' && !unicode.IsPrint(r) { // a terminal is not to obey it
			line[i] = '·'
		}
	}
	if strings.TrimSpace(string(line)) == "" {
		return "", ""
	}
	return before + strings.TrimRight(string(line), " \t") + after, under.String() + "^"
}
