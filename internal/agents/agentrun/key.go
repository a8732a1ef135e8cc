package agentrun

import (
	"bytes"
	"strconv"
)

// keyEnds are the last bytes of the escape sequences that keys send: arrows, Home and End, F1 to F4, Insert to F12, Shift-Tab,
// and the keyboard protocol of kitty.
const keyEnds = "ABCDHFPQRSZ~u"

// hasKey reports whether input of a terminal contains a key. Terminals also send answers to queries, mouse events and
// focus changes, which nobody has typed.
func hasKey(b []byte) bool {
	for len(b) > 0 {
		if b[0] != 0x1b || len(b) == 1 {
			return true // any other byte is one, and Escape alone
		}
		key := false
		switch b[1] {
		case '[':
			key, b = cutControl(b)
		case ']', 'P', '_', '^':
			b = cutAnswer(b)
		default:
			key = true // Alt and a key, or a key of the application mode
		}
		if key {
			return true
		}
	}
	return false
}

// cutControl reports whether the control sequence that b begins with is a key's, and returns what follows it: nothing where
// it does not end.
func cutControl(b []byte) (key bool, rest []byte) {
	n := bytes.IndexFunc(b[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if n < 0 {
		return false, nil
	}
	end := 2 + n
	private := b[2] == '?' || b[2] == '<' || b[2] == '>'
	report := b[end] == 'R' && bytes.IndexByte(b[2:end], ';') > 0 && !isModified(b[2:end]) // the cursor's place
	key = !private && !report && bytes.IndexByte([]byte(keyEnds), b[end]) >= 0
	if b[end] == 'M' && n == 0 {
		end += 3 // the mouse, in the old form
	}
	return key, b[min(end+1, len(b)):]
}

// isModified reports whether the parameters are those of F3 with a modifier, such as 1;5.
func isModified(parameters []byte) bool {
	modifier, found := bytes.CutPrefix(parameters, []byte("1;"))
	n, err := strconv.Atoi(string(modifier))
	return found && err == nil && n >= 2 && n <= 16
}

// cutAnswer returns what follows the string sequence at the start of b, which is not a key; nothing if it is incomplete.
func cutAnswer(b []byte) (rest []byte) {
	_, rest, found := bytes.Cut(b, []byte("\x1b\\"))
	if bell := bytes.IndexByte(b, 7); bell >= 0 && b[1] == ']' && (!found || bell < len(b)-len(rest)) {
		return b[bell+1:]
	}
	if !found {
		return nil
	}
	return rest
}
