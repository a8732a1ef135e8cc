// Package supervise decides what happens to one supervised thing: when its process is started, ended, restarted or given
// up; and when another process is started beside it, and takes over.
//
// It is a state machine without clock, I/O or goroutine. The owner reports what happened ([Machine.Step]), calls
// [Machine.Tick] when [Machine.Deadline] has come, and performs the returned actions in order. The owner promises that a
// process that ran is reported by one Exited and then one TreeGone, and that every event of a process names its
// generation; events of processes that are neither serving nor spares are ignored.
//
// At most one process serves, and the state is its state. Beside it there may be spares: standbys in case it dies, and
// the one of a reload, which takes over from it while it lives. The machine decides when a spare is started
// ([SpawnSpare]), takes over ([TakeOver]) or is not needed ([Dismiss]); the owner initialises and ends it. A process
// that was replaced is no longer the machine's: its end is a [Retirement], one for each.
//
// An idle process can be stopped ([Sleep]): nothing runs then, until a Start or a requested restart. That is no failure
// and is not counted.
//
// The parts of a Machine, each with methods of its own: stopSequence ends one process step by step, spares has the
// processes beside the serving one and the reload under way, endCause says why a process ends. The Machine itself has
// the state, and the tracker of package backoff the counts.
//
// The package starts no goroutine. A Machine, and a Retirement, belongs to the goroutine that made it.
package supervise
