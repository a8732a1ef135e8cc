package agentrun

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// modes are the terminal modes that an agent has changed. An agent that exits normally restores them; a killed one may
// leave a terminal that prints at every move of the mouse.
type modes struct {
	on     map[string]bool // private modes that are not as they were found
	keys   []string        // the flags with which the kitty keyboard protocol was switched on, the last one last
	xkey   string          // the level of xterm's modifyOtherKeys; "": it is off
	keypad bool            // the keypad sends the sequences of its application mode
	cursor string          // the cursor's shape (DECSCUSR); "": the terminal's own
}

// keysMost is how often the kitty keyboard protocol can be switched on: terminals keep no more either.
const keysMost = 16

// watched are the private modes that matter afterwards, with what they are at first: the screen, the cursor keys and the keypad,
// the mouse, pasting, focus.
var watched = map[string]bool{
	"1": false, "66": false, "25": true, "9": false, "1000": false, "1002": false, "1003": false, "1004": false, "1005": false, "1006": false,
	"1015": false, "1016": false, "2004": false, "2026": false, "2031": false, "2048": false, "47": false,
	"1047": false, "1049": false,
}

// csiLimit is the longest sequence that may change a mode, in bytes of its parameters.
const csiLimit = 64

// change takes a sequence, and what it does to a mode.
func (m *modes) change(q sequence) {
	switch q.intro {
	case 'c':
		*m = modes{}
	case '=', '>':
		m.keypad = q.intro == '='
	case '[':
		if len(q.content) <= csiLimit {
			m.control(string(q.content), q.final)
		}
	}
}

// control takes a CSI sequence.
func (m *modes) control(parameters string, final byte) {
	switch {
	case strings.HasSuffix(parameters, " ") && final == 'q':
		if m.cursor = strings.TrimSuffix(parameters, " "); m.cursor == "0" {
			m.cursor = ""
		}
	case strings.HasPrefix(parameters, "?") && (final == 'h' || final == 'l'):
		for number := range strings.SplitSeq(parameters[1:], ";") {
			first, known := watched[number]
			if !known {
				continue
			}
			if m.on == nil {
				m.on = map[string]bool{}
			}
			if m.on[number] = (final == 'h') != first; !m.on[number] {
				delete(m.on, number)
			}
		}
	case strings.HasPrefix(parameters, ">") && final == 'u':
		if len(m.keys) < keysMost {
			m.keys = append(m.keys, parameters[1:])
		}
	case strings.HasPrefix(parameters, "<") && final == 'u':
		n, err := strconv.Atoi(parameters[1:])
		if err != nil {
			n = 1
		}
		m.keys = m.keys[:max(len(m.keys)-max(n, 1), 0)]
	case strings.HasPrefix(parameters, ">4") && final == 'm':
		if _, m.xkey, _ = strings.Cut(parameters, ";"); m.xkey == "0" {
			m.xkey = ""
		}
	}
}

// undo is the output that restores the terminal; "" if nothing was changed.
func (m *modes) undo() string {
	var b strings.Builder
	for range m.keys {
		b.WriteString("\x1b[<u")
	}
	if m.xkey != "" {
		b.WriteString("\x1b[>4;0m")
	}
	if m.keypad {
		b.WriteString("\x1b>")
	}
	if m.cursor != "" {
		b.WriteString("\x1b[0 q")
	}
	screen, rest := m.private(false)
	b.WriteString(rest + screen) // the screen last: what is set for the agent's is set back there
	if b.Len() > 0 {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// redo is the output that gives a fresh terminal the agent's modes. The alternate screen comes first, since drawing goes
// there.
func (m *modes) redo() (screen, rest string) {
	var b strings.Builder
	screen, rest = m.private(true)
	b.WriteString(rest)
	for _, flags := range m.keys {
		b.WriteString("\x1b[>" + flags + "u")
	}
	if m.xkey != "" {
		b.WriteString("\x1b[>4;" + m.xkey + "m")
	}
	if m.keypad {
		b.WriteString("\x1b=")
	}
	if m.cursor != "" {
		b.WriteString("\x1b[" + m.cursor + " q")
	}
	return screen, b.String()
}

// private is the output that sets the private modes as the agent has them, or as they were found. That of the screen is apart.
func (m *modes) private(changed bool) (screen, rest string) {
	for _, number := range slices.Sorted(maps.Keys(m.on)) {
		text := "\x1b[?" + number + "l"
		if watched[number] != changed {
			text = "\x1b[?" + number + "h"
		}
		if number == "47" || number == "1047" || number == "1049" {
			screen += text
		} else {
			rest += text
		}
	}
	return screen, rest
}
