package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// describe formats a tool's input for the person who decides: the command as it is, then every other member on a line
// of its own. The description is last, because it is only what the agent says about the command. Nothing is left out:
// a member that disables the sandbox is more important than the command. Invisible characters are escaped by
// [Escape]. A text over maxLooked bytes is cut; requests of that length are not passed on.
func describe(input json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return compact(input)
	}
	var lines []string
	if command, ok := stringOf(members["command"]); ok {
		lines = append(lines, Escape(logline.Head(command, maxLooked)))
		delete(members, "command")
	}
	names := slices.Sorted(maps.Keys(members))
	if i, found := slices.BinarySearch(names, agentsWords); found {
		names = append(slices.Delete(names, i, i+1), agentsWords)
	}
	for _, name := range names {
		value, ok := stringOf(members[name])
		if ok {
			value = Escape(logline.Head(value, maxLooked))
		} else {
			value = compact(members[name])
		}
		lines = append(lines, Escape(logline.Head(name, maxLooked))+": "+value)
	}
	return strings.Join(lines, "\n")
}

// agentsWords is the member in which the agent describes what a command is for.
const agentsWords = "description"

func stringOf(raw json.RawMessage) (string, bool) {
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return Escape(logline.Head(string(raw), maxLooked))
	}
	return Escape(logline.Head(b.String(), maxLooked))
}

// Escape writes as \u{hex} every character that is invisible or changes how others are shown: control characters,
// which could erase a line, characters that reverse or hide text, and blanks other than the space. A literal \u{ in s
// becomes \u{5c}u{, so that replacing every \u{hex} by its character returns s.
func Escape(s string) string {
	if !strings.ContainsFunc(s, hidden) && !strings.Contains(s, escapeMark) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case hidden(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
		case r == '\\' && strings.HasPrefix(s[i:], escapeMark):
			b.WriteString(`\u{5c}`)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// escapeMark begins an escaped character.
const escapeMark = `\u{`

func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == utf8.RuneError, r == '\u2028', r == '\u2029':
		return true
	case r == '\u200d', r >= '\ufe00' && r <= '\ufe0f': // parts of emoji
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zs, r) && r != ' ' || slices.Contains(blanks, r)
}

// blanks are letters and symbols without a visible glyph: Hangul fillers and the empty Braille pattern.
var blanks = []rune{'\u115f', '\u1160', '\u2800', '\u3164', '\uffa0'}
