// Package lease lets one of several processes do something at a time, over any engine: it needs Get and CAS of a registry, and
// no clock but the process's own.
//
// A lease is one key: who holds it, its epoch, and a count that the holder raises every [Options.Renew]. Who wants it watches the
// count for [Options.TTL] by the own clock; if it has not changed in that time, the lease is taken with the next epoch. The
// holder counts its time from when its last acknowledged renewal was sent, and gives up [Options.Skew] earlier than others may
// take the lease. No machine's time of day is compared with another's.
//
//	free, or unchanged for a TTL ──CAS──> held, epoch+1 ──renew──> held, same epoch ──raise──> held, higher epoch
//	                                        └─ released (free, same epoch) · lost (somebody else has it, or too long without an answer)
//
// Who does not want a lease, but what its holder had, waits for the end of that holder's time with [Outlast].
//
// # What a lease is worth
//
// It saves work; it does not make anything safe. A holder whose process is stopped, or whose machine sleeps, may go on for a
// moment after somebody else has taken the lease. So every record that a holder writes carries its epoch ([Held.Term]), and nobody
// replaces a record of a later epoch. The epoch never falls, neither when a lease is released nor when it is taken over. Only a
// registry that has lost its content begins at 1 again; a holder that then finds a record of a later epoch raises its own above
// it ([Held.Raise]).
//
// # Goroutines
//
// [Acquire] starts one for each lease that it gets, which renews it until [Held.Context] has ended: by Release, by its loss, or
// with the context that Acquire was given.
package lease
