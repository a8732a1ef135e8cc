// Package engine is what several machines share, in as few words as outlive needs: a [Registry] of small values and a [Bus]
// that carries a question to one machine and its answer back. Together they are an [Engine].
//
// Engines are package enginemem (in memory, for tests) and the one of the program outlive-fleet, which alone links a server for
// it. What is safe does not depend on the engine: package lease needs only Get and CAS, and the machine that a command is for
// checks it. An engine may forget everything, answer late, or give old values: it then costs time, never a second recovery.
//
// What every engine promises is tested by package enginetest.
//
// # Keys
//
// A key is some tokens with dots between them, the first of which is its table: "lease.judge", "digest.host1". [Key] makes one
// of any texts. An engine may keep each table in a bucket of its own.
//
// Starts no goroutine.
package engine
