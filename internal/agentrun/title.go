package agentrun

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// titleLimit is how much is kept of a title, and of a notification, in bytes.
const titleLimit = 512

// What a title says about its agent, in the words of the report.
const (
	titleIdle    = "idle"
	titleBusy    = "busy"
	titleWaiting = "waiting"
)

// titles reads what agents write over their terminal. Claude Code and Gemini begin with a sign of their state; Codex puts a
// spinner or "Action Required" before the name that its title has at rest, which can be known only once it was seen so.
type titles struct {
	rest string // what stood behind a spinner or "Action Required"
}

// read tells what a title says: idle, busy, waiting, or nothing.
func (t *titles) read(title string) string {
	first, size := utf8.DecodeRuneInString(title)
	behind := title[size:]
	marked := behind == "" || behind[0] == ' '
	switch {
	case strings.HasPrefix(title, "[ ! ] Action Required"), strings.HasPrefix(title, "[ . ] Action Required"): // Codex; it blinks
		if _, name, ok := strings.Cut(title, " | "); ok {
			t.rest = name
		}
		return titleWaiting
	case !marked:
	case 0x2800 < first && first <= 0x28ff: // a spinner of Braille dots: Codex, and Claude Code before 2.1
		t.rest = strings.TrimSpace(behind)
		return titleBusy
	case strings.ContainsRune("◐◓◑◒", first): // Claude Code
		return titleBusy
	case first == '✳': // Claude Code, also while it waits: nobody can tell by the title
		return titleIdle
	case first == '✦', first == '⏲': // Gemini
		return titleBusy
	case first == '✋':
		return titleWaiting
	case first == '◇':
		return titleIdle
	}
	if title != "" && title == t.rest {
		return titleIdle
	}
	return ""
}

// printable makes one line for people of what an agent has said: at most limit bytes, nothing in it that a terminal would obey.
func printable(s string, limit int) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case c == utf8.RuneError:
			return -1
		case unicode.IsSpace(c):
			return ' '
		case !unicode.IsPrint(c):
			return -1
		}
		return c
	}, s)
	s = strings.TrimSpace(s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "")
	}
	return s
}
