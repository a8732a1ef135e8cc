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
	known map[string]struct{} // lines, and counts of tokens behind a #
}

var (
	// elapsed matches how long something takes, which changes while nothing else does. It also matches a parenthesis that does not
	// end: it is being drawn, and that time stands in it.
	elapsed = lazyregexp.New(`(?i)\d+(?:[.,]\d+)?\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?)\b|\d+(?::\d\d){1,2}|\([^()]*$`)
	// tokens matches a count that goes up while a model answers. Claude Code: "↓ 1.2k tokens".
	tokens = lazyregexp.New(`(\d[\d.,]*k?) tokens\b`)
)

// add takes the lines that are shown now, and reports whether one of them is new, and whether a count of tokens is.
func (s *shown) add(lines []string) (news, counts bool) {
	for _, line := range lines {
		for _, m := range tokens.FindAllStringSubmatch(line) {
			counts = s.learn("#"+m[1]) || counts
		}
		line = strings.Map(letters, elapsed.ReplaceAllString(line, " "))
		if line != "" && !s.torn(line) {
			news = s.learn(line) || news
		}
	}
	return news, counts
}

// learn remembers a line, and reports whether it is new.
func (s *shown) learn(line string) bool {
	if _, known := s.known[line]; known {
		return false
	}
	if s.known == nil || len(s.known) >= shownMost {
		s.known = map[string]struct{}{}
	}
	s.known[line] = struct{}{}
	return true
}

// torn reports whether a line is the beginning of a longer known one, which may just be drawn again.
func (s *shown) torn(line string) bool {
	if _, known := s.known[line]; known {
		return false
	}
	for known := range s.known {
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
