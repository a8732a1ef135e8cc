// Package metrics is everything that outlive keeps alive on a machine as metrics for Prometheus: what there is now, from an
// overview, and counters that never fall, from a [Ledger].
//
// A running outlive counts from zero and takes its counts with it. So what the ended ones have counted is added up in one file:
// [Update] changes it under a lock. Each outlive adds its last counts when it ends, and whoever reads metrics notes what the others
// have counted so far, so that one that was killed is missing no more than the time since. There is no file, and nothing to do at an
// end, before somebody has read metrics.
//
// It starts no goroutine.
package metrics
