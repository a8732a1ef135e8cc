// Package latency counts how long things took, in buckets whose width grows with the time, so that a quantile is known to an
// eighth of its value whatever the scale is. It starts no goroutine, and a [Histogram] has no lock: its owner is one goroutine.
package latency
