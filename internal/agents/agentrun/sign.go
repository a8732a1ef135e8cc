package agentrun

import "strings"

// signKind is the kind of a control sequence.
type signKind uint8

const (
	titleSign signKind = iota // text is the terminal's new title (OSC 0 or 2)
	modeSign                  // text is the sequence's parameters with its final byte: a terminal's mode
)

// sign is a control sequence of interest.
type sign struct {
	kind signKind
	text string
}

// Limits of the sequences that are signs: longer ones, such as the clipboard, say nothing that is needed.
const (
	oscLimit = 4 << 10
	csiLimit = 64
)

// signs hands on each sign of a piece.
func (p piece) signs(emit func(sign)) {
	switch {
	case p.kind == overlong:
	case p.intro == ']':
		number, title, _ := strings.Cut(string(p.content), ";")
		if p.final != 0 && len(p.content) <= oscLimit && (number == "0" || number == "2") {
			emit(sign{titleSign, title})
		}
	case p.intro == '=', p.intro == '>', p.intro == 'c': // the keypad's modes, and a reset
		emit(sign{modeSign, string(rune(p.intro))})
	case p.intro == '[':
		n := len(p.content)
		private := n > 0 && strings.IndexByte("?<>", p.content[0]) >= 0 && strings.IndexByte("hlum", p.final) >= 0
		shape := n > 0 && p.content[n-1] == ' ' && p.final == 'q' // the cursor's
		if n <= csiLimit && (private || shape) {
			emit(sign{modeSign, string(p.content) + string(rune(p.final))})
		}
	}
}
