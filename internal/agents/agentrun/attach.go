package agentrun

import (
	"errors"
	"os"
)

// AttachOptions of [Attach].
type AttachOptions struct {
	// Socket is where the terminal can be joined, see [Report.Socket].
	Socket string
	// In and Out are the person's terminal.
	In, Out *os.File
	// Who is the person's name, for others.
	Who string
	// ReadOnly shows the terminal, and takes no key but [LeaveKey].
	ReadOnly bool
	// Attached is called once, after joining and before anything is drawn. May be nil.
	Attached func()
}

// Leaving is how [Attach] has ended.
type Leaving struct {
	Exit   *Exit  // the agent has ended; nil: it continues
	Signal string // which signal has ended us; "": none, the person has detached
	Number int    // of that signal
}

// Errors of [Attach].
var (
	// ErrNoTerminal says that stdin or stdout is not a terminal.
	ErrNoTerminal = errors.New("stdin and stdout have to be a terminal")
	// ErrNobodyListens says that nothing listens at the socket: the wrapper has ended, or was killed.
	ErrNobodyListens = errors.New("the process that kept its terminal has ended")
	// ErrRefused says that the wrapper refuses the connection; the text says why.
	ErrRefused = errors.New("refused")
	// ErrLost says that the connection broke: the wrapper was killed.
	ErrLost = errors.New("the connection is lost: the process that keeps its terminal is gone")
)
