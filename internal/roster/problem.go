package roster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pos is a place in a file. Line and Column count from 1; columns are characters. The zero Pos is the file as a whole.
type Pos struct{ Line, Column int }

// Problem is one mistake, or one warning.
type Problem struct {
	Pos     Pos
	Message string // what is wrong
	Hint    string // what to do about it; may be empty
	secret  bool   // the line holds an address with its token: it is not shown
}

// Problems are all mistakes of a file, in the order of the file: the error of [Parse].
type Problems struct {
	List   []Problem
	source *source
}

// mostShown is how many mistakes [Problems.Error] spells out.
const mostShown = 100

// Error lists the mistakes as file:line:column: message, with the line and a caret below; of very many only the first 100.
func (p *Problems) Error() string {
	var parts []string
	for i, problem := range p.List {
		if i == mostShown {
			parts = append(parts, fmt.Sprintf("%s: %d more", p.source.name, len(p.List)-i))
			break
		}
		parts = append(parts, p.source.render(problem))
	}
	return strings.Join(parts, "\n")
}

// inOrder sorts by position and drops what is said twice: what stands behind an alias is looked at for each of its uses.
func inOrder(list []Problem) []Problem {
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Pos.Column, b.Pos.Column))
	})
	return slices.Compact(list)
}

// source is a file's text, by lines.
type source struct {
	name  string
	lines []string // without their ends, LF or CRLF
	text  []byte
}

func newSource(name string, text []byte) *source {
	lines := strings.Split(string(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	return &source{name: name, lines: lines, text: text}
}

// inside moves a place into the file: parsers put the end of the input behind the last line.
func (s *source) inside(line, column int) Pos {
	last := len(s.lines)
	if last > 1 && s.lines[last-1] == "" {
		last--
	}
	if line > last {
		return Pos{last, utf8.RuneCountInString(s.lines[last-1]) + 1}
	}
	line = max(line, 1)
	return Pos{line, min(max(column, 1), utf8.RuneCountInString(s.lines[line-1])+1)}
}

func (s *source) render(p Problem) string {
	text := printable(p.Message)
	if p.Hint != "" {
		text += ": " + printable(p.Hint)
	}
	if p.Pos.Line == 0 || p.Pos.Line > len(s.lines) {
		return s.name + ": " + text
	}
	text = fmt.Sprintf("%s:%d:%d: %s", s.name, p.Pos.Line, p.Pos.Column, text)
	excerpt, caret := excerpt(s.lines[p.Pos.Line-1], p.Pos.Column-1)
	if excerpt == "" || p.secret {
		return text
	}
	return text + "\n    " + excerpt + "\n    " + caret
}

// widest is how many characters of a line are shown.
const widest = 100

// excerpt gives a line, and a second one with a caret below the column. Both are empty for an empty line.
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
		if c != '\t' { // a tab below a tab is as wide as it
			c = ' '
		}
		under.WriteRune(c)
	}
	return before + strings.TrimRight(printable(string(line)), " \t") + after, under.String() + "^"
}

// printable takes out what a terminal would obey.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return '·'
	}, s)
}

// didYouMean is the hint for a word that is not known.
func didYouMean(word string, known []string) string {
	plain, best := folded(word), ""
	nearest := 1 + len(plain)/3
	if len(plain) < 3 || len(plain) > 40 { // too short to tell, too long to be one
		nearest = 0
	}
	for _, k := range known {
		if folded(k) == plain {
			return fmt.Sprintf("did you mean %q?", k)
		}
		if d := distance(plain, folded(k)); d < nearest {
			best, nearest = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) > 0 && len(known) <= 10:
		return "want " + strings.Join(known, ", ")
	}
	return ""
}

// folded makes ackTimeout, ack-timeout and ack_timeout the same.
func folded(word string) string { return unseparated.Replace(strings.ToLower(word)) }

var unseparated = strings.NewReplacer("_", "", "-", "", " ", "")

// distance counts the letters that were added, left out or changed, or exchanged with their neighbour.
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			changed := row[j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			next[j] = min(changed, row[j]+1, next[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
