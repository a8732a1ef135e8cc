//go:build !linux

package process

// BootID identifies this boot of the machine. "": not available.
func BootID() string { return "" }

// FindsStarts says that a start that could not be recorded is not found again.
const FindsStarts = false
