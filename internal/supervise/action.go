package supervise

import "time"

// Action is something the owner is to do. The actions are the types of this file.
type Action interface{ action() }

// Spawn starts the process of a new generation; the first is 0. The owner tells how that went by [SpawnFailed], or by
// everything that happens to it.
type Spawn struct {
	Gen    int
	Cause  Cause // why there is a new one; NoCause: it is the first
	Source Source
	Reason string // in words
}

// BeginDrain stops handing the process anything new; what is in flight may finish. The owner tells [Drained].
type BeginDrain struct{ Gen int }

// CloseStdin closes the process's stdin behind everything that is still to be given to it.
type CloseStdin struct{ Gen int }

// Terminate asks the process's whole group to end.
type Terminate struct{ Gen int }

// Kill ends the process's whole tree.
type Kill struct{ Gen int }

// Report tells of one transition; it comes before the actions that the transition causes.
type Report struct {
	From, To State
	Gen      int // of the process this is about; of the new one on the way to Starting
	Restarts int // lifetime, this one included

	Cause  Cause
	Source Source
	Reason string

	// Code and Signalled are the exit: in a transition to Sweeping and from there.
	Code      int
	Signalled bool

	// Delay is the wait until the next start: in a transition to Backoff, and to Failed, where 0 is never by itself.
	Delay time.Duration
	// Throttled: the delay of a requested restart is because of the floor between two of them (S0 5.2).
	Throttled bool
	// Asked: somebody asked for this start while no process ran.
	Asked bool
	// Recovered: this process is the first that came up after the state was Failed.
	Recovered bool
}

// Finish ends the supervised thing: nothing runs any more and nothing will. Code is the exit status to leave with.
type Finish struct{ Code int }

func (Spawn) action()      {}
func (BeginDrain) action() {}
func (CloseStdin) action() {}
func (Terminate) action()  {}
func (Kill) action()       {}
func (Report) action()     {}
func (Finish) action()     {}
