//go:build !linux

package process

// BootID identifies this boot of the machine. "": not available.
func BootID() string { return "" }

// Identify is the identity of a process that we have started. One that has ended already, which the next look will see, has no start
// time.
func (s System) Identify(pid int) Identity {
	p, _ := s.Look(pid) // nothing is known of one that has ended
	return Identity{PID: pid, Start: p.Start, Boot: BootID()}
}

// FindsStarts says that a start that could not be recorded is not found again.
const FindsStarts = false
