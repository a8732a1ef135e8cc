// Package supervise decides what happens to one supervised process: when it is started, ended, started again, and when
// no more.
//
// It is a state machine without clock, I/O or goroutine. The owner tells it what happened ([Machine.Step]), wakes it
// when [Machine.Deadline] has come ([Machine.Tick]), and carries out the actions it returns, in their order. The owner
// promises that a process that ran is told of by one Exited and then one Gone, and that everything it says of a process
// names that process's generation; what is said of an earlier one changes nothing.
//
// The package starts no goroutine. A Machine belongs to the goroutine that made it.
package supervise
