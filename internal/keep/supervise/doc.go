// Package supervise decides what happens to one supervised thing: when its process is started, ended, started again, and
// when no more; and when another process is brought up beside it, and takes over.
//
// It is a state machine without clock, I/O or goroutine. The owner tells it what happened ([Machine.Step]), wakes it
// when [Machine.Deadline] has come ([Machine.Tick]), and carries out the actions it returns, in their order. The owner
// promises that a process that ran is told of by one Exited and then one TreeGone, and that everything it says of a process
// names that process's generation; what is said of any that is neither serving nor a spare changes nothing.
//
// At most one process serves, and the state is its state. Beside it there can be spares: those that stand by for the case
// that it dies, and the one of a reload, which is to take over from it while it lives. The machine decides when a spare is
// started ([SpawnSpare]), takes over ([TakeOver]) or is no longer wanted ([Dismiss]); bringing it up, and ending it, is the
// owner's. A process that another one has taken over from is out of the machine: its end is a [Retirement], one for each.
//
// A process that nobody needs can be sent to sleep ([Sleep]): it is ended, nothing runs, and a Start or a requested restart
// starts the next one. That is no failure and is not counted.
//
// The parts of a Machine, each with methods of its own: stopSequence ends one process step by step, spares has the processes beside
// the serving one and the reload under way, endCause says why a process ends. The Machine itself has the state, and the
// tracker of package backoff the counts.
//
// The package starts no goroutine. A Machine, and a Retirement, belongs to the goroutine that made it.
package supervise
