package agentrun

import (
	"strings"
	"unicode"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// shownMost is how many lines are remembered. One that comes back after more than that counts as new.
const shownMost = 2048

// shown remembers the lines of an agent's terminal, to tell new text from an animation.
type shown struct {
	lines map[string]struct{}
}

// elapsed matches how long something takes, which changes while nothing else does, and a parenthesis that does not end: it is
// being drawn, and that time stands in it.
var elapsed = lazyregexp.New(`(?i)\d+(?:[.,]\d+)?\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\b|\d+(?::\d\d){1,2}|\([^()]*$`)

// add takes the lines that are shown now, and reports whether one of them is new.
func (s *shown) add(lines []string) (news bool) {
	for _, line := range lines {
		line = strings.Map(letters, elapsed.ReplaceAllString(line, " "))
		if _, known := s.lines[line]; known || line == "" || s.torn(line) {
			continue
		}
		if s.lines == nil || len(s.lines) >= shownMost {
			s.lines = map[string]struct{}{}
		}
		s.lines[line], news = struct{}{}, true
	}
	return news
}

// torn reports whether a line is the beginning of a known one, which may just be drawn again.
func (s *shown) torn(line string) bool {
	for known := range s.lines {
		if strings.HasPrefix(known, line) {
			return true
		}
	}
	return false
}

// letters keeps letters and digits: animations and the bars of progress are drawn with other signs.
func letters(c rune) rune {
	if unicode.IsLetter(c) || unicode.IsDigit(c) {
		return c
	}
	return -1
}
