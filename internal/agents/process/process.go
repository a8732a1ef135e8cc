package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Identity is one process for all time: a number alone is given to another one day.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in the system's own units
	Boot  string `json:"boot"`  // of the machine; "": the system does not tell
}

// OwnUser is the number of our own user. "": the system has no such numbers.
func OwnUser() string {
	if id := os.Geteuid(); id >= 0 {
		return strconv.Itoa(id)
	}
	return ""
}

// Process describes a living process.
type Process struct {
	Identity
	Program string // its name; of 15 bytes at most on Linux
	Parent  int
	Age     time.Duration // since it was started
	CPU     time.Duration // user and system time it has used, or Untold
	// Group and Session are the numbers of those that it is in. 0: the system does not tell.
	Group, Session int
	// Stopped says that job control has stopped it: by SIGSTOP, or by Ctrl-Z at its terminal. Windows has no such state.
	Stopped bool

	// Only [System.Look] tells these.
	Dir  string // its working directory; "": not ours to know
	User string // the effective user ID; "": not available
}

// Untold is the CPU time of a process where the system does not tell it.
const Untold time.Duration = -1

// Target is what must be dead before a replacement starts.
type Target struct {
	// Leaders are processes with everything they started: children, their children, and all that is still in their
	// session or group. One that is dead already may have left some.
	Leaders []Identity
	// LeftBefore limits which processes of a dead leader's session are taken for its own: those started before.
	LeftBefore time.Time
	// Runs are tokens of our own starts: a process with one belongs to it, wherever its parent is.
	Runs []string
	// Wrapper is the process that passes each SIGTERM on to the rest and ends with it: it is only killed.
	Wrapper Identity
	// Grace is the time from SIGTERM to SIGKILL. 0: 2 s (PIV-9).
	Grace time.Duration
}

// StopGrace is how long a process has from SIGTERM until it is looked at again, and killed (PIV-9).
const StopGrace = 2 * time.Second

// Launch is something to be started.
type Launch struct {
	Run     string // its token: the same one is never started twice
	Command []string
	Dir     string
	Environ []string
}

// System is the real world; its methods are in the files of each system.
type System struct{}

// RunVariable is the environment variable that shows to which start a process belongs.
const RunVariable = "OUTLIVE_AGENT_RUN"

// StopError lists the processes that are still there.
type StopError struct {
	PID int
	Err error
}

// Error is the text of PIV-9, which a human can act on.
func (e *StopError) Error() string {
	return fmt.Sprintf("Cannot kill PID %d, manual intervention needed (%v)", e.PID, e.Err)
}

// Unwrap returns why.
func (e *StopError) Unwrap() error { return e.Err }

// Why a process cannot be ended.
var (
	errOurselves = errors.New("we run below it")
	errStuck     = errors.New("it does not end")
)
