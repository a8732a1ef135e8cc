package child

import (
	"errors"
	"time"
)

// Usage is what a process and everything it started use at one moment.
type Usage struct {
	// RSS is resident memory in bytes: the private resident pages of every process of the tree, and the shared ones
	// (libraries, mapped files) of the process that has most of them. A plain sum would count a runtime's libraries once
	// for every process; the exact proportional figure costs the kernel a walk over all pages. Pages that a fork left
	// shared are counted for each process. On Windows it is the sum of the working sets.
	RSS int64
	// CPU is user and system time since the start of each process, with that of the descendants that have died and were
	// waited for. It falls when a descendant that nobody waits for dies.
	CPU time.Duration
	// State is the leader's as /proc tells it: R running, S sleeping, D in the kernel, T stopped, t held by a debugger, Z
	// dead and not reaped, I idle. 0: the system does not tell. T also if a descendant is stopped: a launcher only waits.
	State byte
	// Processes counts the living ones, with the leader. Zombies do not count.
	Processes int
}

// ErrUnsupported is returned by [TreeUsage] and [Continue] where the operating system offers no cheap way. It is
// [errors.ErrUnsupported] itself.
var ErrUnsupported = errors.ErrUnsupported
