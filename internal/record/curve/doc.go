// Package curve keeps how servers did, minute by minute, for a day: how many calls ended, how long they took, how many failed, and
// what their processes used.
//
// Each outlive has a [Recorder], which looks at its servers' totals once a minute and keeps what was new as a [Point]. A server has a
// [Curve] from its first call on: 40 KB. Nothing is done when a call is relayed.
//
// Whoever shows curves keeps a copy of each, and asks for what it does not have yet ([Recorder.After]): a [Part], which [Curve.With]
// takes up. A minute of which nothing is known, such as one before outlive was started, is a gap and no zero.
//
// # Goroutines
//
// A Recorder starts none: [Recorder.Run] works on its caller's. Its methods may be called from any. A Curve is never changed once
// another goroutine has it: With makes a new one.
package curve
