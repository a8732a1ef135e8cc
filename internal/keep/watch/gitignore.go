package watch

import (
	"bytes"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits for reading an ignore file.
const (
	ignoreFileLimit = 1 << 20 // bytes
	ignoreLineLimit = 1 << 10 // bytes; paths are shorter
)

// ignoreLine is one pattern of a .gitignore file.
type ignoreLine struct {
	glob     string
	negated  bool // "!": matching files are watched nevertheless
	dirOnly  bool // "name/"
	baseName bool // no slash: matches the last element at any depth
	literal  bool // no wildcard
}

// parseIgnore reads the lines of a .gitignore or exclude file (gitignore(5)).
func parseIgnore(text []byte) []ignoreLine {
	var lines []ignoreLine
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if len(line) > ignoreLineLimit {
			continue
		}
		if one, ok := parseIgnoreLine(strings.TrimSuffix(string(line), "\r")); ok {
			lines = append(lines, one)
		}
	}
	return lines
}

func parseIgnoreLine(s string) (ignoreLine, bool) {
	if strings.HasPrefix(s, "#") {
		return ignoreLine{}, false
	}
	var l ignoreLine
	s = trimSpaces(s)
	s, l.negated = strings.CutPrefix(s, "!")
	s, l.dirOnly = strings.CutSuffix(s, "/")
	l.baseName = !strings.Contains(s, "/")
	s = strings.TrimPrefix(s, "/")
	l.glob = s
	l.literal = !strings.ContainsAny(s, `*?[\`)
	return l, s != ""
}

// trimSpaces removes the spaces at the end, except one that a backslash precedes.
func trimSpaces(s string) string {
	keep := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			i++
			keep = i + 1
		case s[i] != ' ':
			keep = i + 1
		}
	}
	return s[:keep]
}

// match reports whether the line is about rel, a slash path relative to the ignore file's directory.
func (l *ignoreLine) match(rel string, isDir bool) bool {
	if l.dirOnly && !isDir {
		return false
	}
	if l.baseName {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	if l.literal {
		return rel == l.glob
	}
	if suffix, ok := strings.CutPrefix(l.glob, "*"); ok && l.baseName && !strings.ContainsAny(suffix, `*?[\`) {
		return strings.HasSuffix(rel, suffix)
	}
	glob := l.glob
	if !l.baseName {
		// As git does, and with its effect: behind a literal beginning "**" counts as standing alone.
		n := strings.IndexAny(glob, `*?[\`)
		if !strings.HasPrefix(rel, glob[:n]) {
			return false
		}
		glob, rel = glob[n:], rel[n:]
	}
	ok, err := doublestar.Match(braces.Replace(glob), rel)
	return ok && err == nil // as for git, what is no pattern matches nothing
}

// braces are plain text in an ignore file.
var braces = strings.NewReplacer("{", `\{`, "}", `\}`)

// ignoreState is the result of a list of lines for a path.
type ignoreState uint8

const (
	undecided ignoreState = iota
	ignored               // a line matches
	included              // a line with "!" matches
)

// judge returns the result of the last matching line.
func judge(lines []ignoreLine, rel string, isDir bool) ignoreState {
	for i := len(lines) - 1; i >= 0; i-- {
		switch {
		case !lines[i].match(rel, isDir):
		case lines[i].negated:
			return included
		default:
			return ignored
		}
	}
	return undecided
}
