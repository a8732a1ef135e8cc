package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Identity is one process for all time: a number alone is given to another one day.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in the system's own units
	Boot  string `json:"boot"`  // of the machine
}

// Process is what is known of a living process.
type Process struct {
	Identity
	Age time.Duration // since it was started
	Dir string        // its working directory; "": not ours to know
}

// Target is what has to be dead before something new is started.
type Target struct {
	// Leaders are processes with everything they started: children, their children, and whoever is still in their
	// session or group. One that is dead already may have left some.
	Leaders []Identity
	// LeftBefore bounds whose of a dead leader's session is taken for its own: who was started before.
	LeftBefore time.Time
	// Runs are tokens of our own starts: whoever wears one belongs to it, wherever its parent is.
	Runs []string
}

// Launch is an orchestrator to be started.
type Launch struct {
	Run     string // its token: the same one is never started twice
	Command []string
	Dir     string
	Environ []string
}

// processes is the world of processes. Tests put another one in its place.
type processes interface {
	// Look returns the process of a number; the error wraps os.ErrProcessDone when there is none, or only a dead one
	// that nobody has waited for.
	Look(pid int) (Process, error)
	// Stop asks everything of a target to go, kills what has not gone after 2 s (S4), and returns nil only when it has
	// seen that nobody is left.
	Stop(ctx context.Context, t Target) error
	// Start starts an orchestrator that outlives us, or finds the one that was started with this token.
	Start(l Launch) (Identity, error)
}

// system is the real world; its methods stand in the files of each system.
type system struct{}

// runVariable is the environment variable that shows to which start a process belongs.
const runVariable = "OUTLIVE_AGENT_RUN"

// StopError says who is still there.
type StopError struct {
	PID int
	Err error
}

// Error is S4's text, which a human can act on.
func (e *StopError) Error() string {
	return fmt.Sprintf("Cannot kill PID %d, manual intervention needed (%v)", e.PID, e.Err)
}

// Unwrap returns why.
func (e *StopError) Unwrap() error { return e.Err }

// Why a process cannot be ended.
var (
	errOurselves = errors.New("the monitor runs below it")
	errStuck     = errors.New("it does not end")
)

// nearDeath is how much older than a heartbeat a process of its number must be, to be sure that it is not younger:
// the two are measured by different clocks.
const nearDeath = time.Minute
