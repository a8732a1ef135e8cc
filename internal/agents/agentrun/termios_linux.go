package agentrun

import "golang.org/x/sys/unix"

// How a terminal's settings are read and written.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
