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
)

// describe writes a tool's input for a person to decide on: the command as it is, then every other member on its line.
// Nothing may be left out: a member such as one that switches the sandbox off matters more than the command. Only the
// description stands apart, because it is what the agent says about it, not what it does. What is longer than anybody is
// asked about is cut.
func describe(input json.RawMessage) (text, description string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return compact(input), ""
	}
	var lines []string
	if command, ok := stringOf(members["command"]); ok {
		lines = append(lines, visible(head(command, maxLooked)))
		delete(members, "command")
	}
	if d, ok := stringOf(members["description"]); ok {
		description = visible(head(d, maxLooked))
		delete(members, "description")
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value, ok := stringOf(members[name])
		if !ok {
			value = compact(members[name])
		}
		lines = append(lines, visible(head(name, maxLooked))+": "+visible(head(value, maxLooked)))
	}
	return strings.Join(lines, "\n"), description
}

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
		return visible(head(string(raw), maxLooked))
	}
	return visible(head(b.String(), maxLooked))
}

// visible writes characters that a screen does not show as what they are: control characters, which could wipe a line
// out, and those that reverse or hide text. What a person approves is what will run.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == utf8.RuneError, r == '\u2028', r == '\u2029':
		return true
	case r == '\u200d', r >= '\ufe00' && r <= '\ufe0f': // they make emoji
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// cutMark stands where text was cut off.
const cutMark = "…"

// head is the beginning of s in at most limit bytes, whole characters only.
func head(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := limit - len(cutMark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + cutMark
}

// tail is the end of s.
func tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := len(s) - limit + len(cutMark)
	for n < len(s) && !utf8.RuneStart(s[n]) {
		n++
	}
	return cutMark + s[n:]
}
