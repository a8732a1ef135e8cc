// Package backoff says how long to wait before a process is started again, and when to give up.
//
// A [Policy] is the settings, a [Tracker] the memory of one supervised process. Both are free of clock and randomness:
// the moment and a random number come in as arguments, so that virtual days pass in milliseconds.
//
// The package starts no goroutine. A Tracker belongs to its creator and must not be used by two goroutines at once.
package backoff
