package agentrun

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// LeaveKey names the key that leaves a joined terminal, for people: dtach's and abduco's.
const LeaveKey = `Ctrl-\`

var (
	// leaveKey matches it: a control character, or, if the agent has enabled that, CSI u (kitty) or CSI 27 (xterm). Its modifier
	// is Ctrl, with CapsLock, NumLock or both. The end of a press (:3) is none.
	leaveKey = lazyregexp.New(`\x1c|\x1b\[(?:92(?::[\d:]*)?;(?:5|69|133|197)(?::[12]?)?(?:;[\d:]*)?u|27;(?:5|69|133|197);92~)`)
	// halfKey matches an escape sequence that has not come whole. Alt and [ alone are none.
	halfKey = lazyregexp.New(`\x1b\[[ -?]{1,64}\z`)
)

// leaveScanner looks for the key that leaves in typed input. A sequence that may be it is held back until it has come whole.
type leaveScanner struct{ held []byte }

// read takes typed input and returns what is for the agent; left: the key was pressed, and what follows is dropped.
func (l *leaveScanner) read(b []byte) (pass []byte, left bool) {
	b = append(l.held, b...)
	l.held = nil
	if at := leaveKey.Compiled().FindIndex(b); at != nil {
		return b[:at[0]], true
	}
	if at := halfKey.Compiled().FindIndex(b); at != nil {
		b, l.held = b[:at[0]], bytes.Clone(b[at[0]:])
	}
	return b, false
}
