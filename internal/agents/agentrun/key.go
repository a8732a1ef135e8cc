package agentrun

import (
	"bytes"
	"strconv"
	"strings"
)

// keyEnds are the last bytes of the escape sequences that keys send: arrows, Home and End, F1 to F4, Insert to F12, Shift-Tab,
// and the keyboard protocol of kitty.
const keyEnds = "ABCDHFPQRSZ~u"

// hasKey reports whether input of a terminal contains a key. Terminals also send answers to queries, mouse events and
// focus changes, which nobody has typed.
func hasKey(b []byte) bool {
	for len(b) > 0 {
		if b[0] != esc || len(b) == 1 || strings.IndexByte("[]P_^", b[1]) < 0 {
			return true // any other byte is one, Escape alone, Alt and a key, or a key of the application mode
		}
		n := sequenceEnd(b)
		if n == 0 {
			return false // what does not end here is none
		}
		q := apart(b[:n])
		if q.isKey() {
			return true
		}
		if q.final == 'M' && len(q.content) == 0 {
			n += 3 // the mouse, in the old form
		}
		b = b[min(n, len(b)):]
	}
	return false
}

// isKey reports whether a sequence is a key's.
func (q sequence) isKey() bool {
	if q.intro != '[' || strings.IndexByte(keyEnds, q.final) < 0 {
		return false
	}
	private := len(q.content) > 0 && strings.IndexByte("?<>", q.content[0]) >= 0
	report := q.final == 'R' && bytes.IndexByte(q.content, ';') > 0 && !isModified(q.content) // the cursor's place
	return !private && !report
}

// isModified reports whether the parameters are those of F3 with a modifier, such as 1;5.
func isModified(parameters []byte) bool {
	modifier, found := bytes.CutPrefix(parameters, []byte("1;"))
	n, err := strconv.Atoi(string(modifier))
	return found && err == nil && n >= 2 && n <= 16
}
