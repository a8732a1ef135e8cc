package agentrun

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
)

// titleLimit is how much is kept of a title, in bytes.
const titleLimit = 512

// title is the new title of the terminal that a sequence sets (OSC 0 and 2).
func (q sequence) title() (text string, ok bool) {
	if q.intro != ']' || q.final == 0 {
		return "", false
	}
	number, text, _ := strings.Cut(string(q.content), ";")
	return text, number == "0" || number == "2"
}

// titles reads what agents write over their terminal, by the signs of all CLIs: a wrapper need not know which one its command
// runs. The title that a CLI has at rest can be known only once it was seen behind a sign.
type titles struct {
	rest string // what stood behind a spinner or an alert
}

// read tells what a title says: idle, busy, waiting, or nothing.
func (t *titles) read(title string) agentcli.Status {
	first, size := utf8.DecodeRuneInString(title)
	behind := title[size:]
	marked := behind == "" || behind[0] == ' '
	for _, cli := range agentcli.CLIs() {
		s := cli.Signs
		switch {
		case slices.ContainsFunc(s.Alerts, func(alert string) bool { return strings.HasPrefix(title, alert) }):
			if _, name, ok := strings.Cut(title, " | "); ok {
				t.rest = name
			}
			return agentcli.Waiting
		case !marked || size == 0:
		case s.Spins && 0x2800 < first && first <= 0x28ff:
			t.rest = strings.TrimSpace(behind)
			return agentcli.Busy
		case strings.ContainsRune(s.Busy, first):
			return agentcli.Busy
		case strings.ContainsRune(s.Idle, first):
			return agentcli.Idle
		case strings.ContainsRune(s.Waiting, first):
			return agentcli.Waiting
		}
	}
	if title != "" && title == t.rest {
		return agentcli.Idle
	}
	return agentcli.Unknown
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
