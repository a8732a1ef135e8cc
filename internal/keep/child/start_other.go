//go:build !linux

package child

import "os"

// start spawns the process.
func (p *Process) start(path string, spec Spec, env []string, theirs [3]*os.File) error {
	return p.startDirect(path, spec, env, theirs)
}

// end waits for the process's end and returns its status; the process is reaped then.
func (p *Process) end() Status { return p.endDirect() }

// unread is not possible: a pipe's fill level is known only at the reading end.
func unread(*os.File) (int, bool) { return 0, false }

// Prepare does nothing: there is no keeper here. On Windows a job object that ends with outlive does a keeper's work; on
// macOS a process that left its group may survive if outlive is killed.
func Prepare() {}

// PrepareToInherit does nothing: there is no keeper here.
func PrepareToInherit() {}

// EndKeeper does nothing: there is no keeper here.
func EndKeeper() {}

// RestKeeper does nothing: there is no keeper here.
func RestKeeper() {}
