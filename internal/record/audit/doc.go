// Package audit writes the audit log: one JSON object a line (TP-8), rotated (TP-11).
//
// [Log.Emit] encodes an event and puts it into a [queue.Queue] of the log's own, whose goroutine owns the file: a slow or full disk
// never blocks a caller. What does not fit, or cannot be written, is counted, and an event "log_lost" stands in its place.
// [Log.Close] ends the goroutine after the queue was written, or after a short wait.
//
// Several processes may write one path, see [rotation.File]: lines are appended whole, and each has its proxy_pid.
package audit
