package agentrun

import (
	"bytes"
	"strings"
)

// signKind is the kind of a control sequence.
type signKind uint8

const (
	titleSign  signKind = iota // text is the terminal's new title (OSC 0 or 2)
	bellSign                   // BEL
	noticeSign                 // text is a notification's (OSC 9, 99 or 777)
	modeSign                   // text is the sequence's parameters with its final byte: a terminal's mode
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
		if p.final != 0 && len(p.content) <= oscLimit {
			p.notice(emit)
		}
	case p.intro == '=', p.intro == '>', p.intro == 'c': // the keypad's modes, and a reset
		emit(sign{modeSign, string(rune(p.intro))})
	case p.kind == plain, p.intro == '[', p.intro == bel: // a BEL in a CSI sequence is obeyed, one in a DCS is part of it
		for range bytes.Count(p.bytes, []byte{bel}) {
			emit(sign{kind: bellSign})
		}
		n := len(p.content)
		private := n > 0 && strings.IndexByte("?<>", p.content[0]) >= 0 && strings.IndexByte("hlum", p.final) >= 0
		shape := n > 0 && p.content[n-1] == ' ' && p.final == 'q' // the cursor's
		if n <= csiLimit && (private || shape) {
			emit(sign{modeSign, string(p.content) + string(rune(p.final))})
		}
	}
}

// notice is what an OSC tells people.
func (p piece) notice(emit func(sign)) {
	number, text, _ := strings.Cut(string(p.content), ";")
	switch number {
	case "0", "2":
		emit(sign{titleSign, text})
	case "9":
		// 9;4 is a progress bar, and 9;1 to 9;12 are ConEmu's other commands.
		if word, _, more := strings.Cut(text, ";"); !more || word == "" || len(word) > 2 || strings.Trim(word, "0123456789") != "" {
			emit(sign{noticeSign, text})
		}
	case "99":
		if _, text, ok := strings.Cut(text, ";"); ok && text != "" {
			emit(sign{noticeSign, text})
		}
	case "777":
		if text, ok := strings.CutPrefix(text, "notify;"); ok {
			emit(sign{noticeSign, strings.ReplaceAll(text, ";", ": ")})
		}
	}
}
