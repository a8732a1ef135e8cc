package supervise

import "time"

// Action is something the owner is to do. The actions are the types of this file.
type Action interface{ action() }

// Spawn starts the process of a new generation; the first is 0. The owner reports [SpawnFailed], or the events of the
// process.
type Spawn struct {
	Gen    int
	Cause  Cause // why there is a new one; NoCause: it is the first
	Source Source
	Reason string // in words
}

// SpawnSpare starts a process beside the serving one. The owner initialises and checks it, and reports [SpareReady] or
// [SpareFailed]; every spare ends in one [TakeOver], one [Dismiss] or one SpareFailed. Generations are those of Spawn:
// each is higher than every one before.
type SpawnSpare struct {
	Gen    int
	Reload bool // it takes over once it can; otherwise it stands by
	// Cause, Source and Reason are those of the planned restart; empty for a standby.
	Cause  Cause
	Source Source
	Reason string
	// Silent: the restart was reported already; this replaces a spare that had to serve at once by newer code.
	Silent bool
}

// Throttled says that a planned restart beside the serving process waits for the floor between two requested restarts.
// Its [SpawnSpare] follows then.
type Throttled struct{ Delay time.Duration }

// TakeOver makes the spare Gen the serving process, between two messages.
type TakeOver struct {
	Gen int
	// Old is the process that served and still lives: it is to be retired, see [Retirement]. -1: it is gone.
	Old int
	// Ready: it can serve now. Otherwise it is still coming up, with the ordinary events from now on: [Ready],
	// [Refused], [Exited].
	Ready bool
}

// Dismiss says that a spare is not needed any more: the owner ends it, see [Retirement].
type Dismiss struct{ Gen int }

// ReloadFailed says that a planned restart beside the serving process failed. That process continues.
type ReloadFailed struct {
	Gen    int    // of the spare; -1: none was started
	Source Source // of the restart
	Reason string // of the restart, in words
	Why    string // it failed, in words
}

// BeginDrain stops new requests to the process; those in flight may finish. The owner reports [Drained].
type BeginDrain struct{ Gen int }

// CloseStdin closes the process's stdin behind everything that is still to be given to it.
type CloseStdin struct{ Gen int }

// Terminate asks the process's whole group to end.
type Terminate struct{ Gen int }

// Kill ends the process's whole tree.
type Kill struct{ Gen int }

// Report describes one transition; it comes before the actions that the transition causes.
type Report struct {
	From, To State
	Gen      int // of the process this is about; of the new one on the way to Starting and when a spare takes over
	Restarts int // lifetime, this one included

	Cause  Cause
	Source Source
	Reason string

	// Delay is the wait until the next start: in a transition to Backoff, and to Failed, where 0 is never by itself.
	Delay time.Duration
	// Throttled: Delay is the rest of the floor between two requested restarts. A Released report follows then.
	Throttled bool
	// Released: the floor has passed. Delay is the pause before the start, 0 if there is none.
	Released bool
	// Asked: this start was requested while no process ran.
	Asked bool
	// AtOnce: a standby took over from a living process; nothing was reported of this restart before.
	AtOnce bool
	// Recovered: this process is the first that came up after the state was Failed.
	Recovered bool
}

// Finish ends everything: nothing runs and nothing will. Code is the exit status.
type Finish struct{ Code int }

func (Spawn) action()        {}
func (SpawnSpare) action()   {}
func (Throttled) action()    {}
func (TakeOver) action()     {}
func (Dismiss) action()      {}
func (ReloadFailed) action() {}
func (BeginDrain) action()   {}
func (CloseStdin) action()   {}
func (Terminate) action()    {}
func (Kill) action()         {}
func (Report) action()       {}
func (Finish) action()       {}
