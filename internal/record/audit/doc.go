// Package audit writes the audit log: one JSON object a line (TP-8), rotated (TP-11).
//
// [Log.Emit] encodes an event and puts it into a [queue.Queue] of the log's own, whose goroutine owns the file: a slow or full disk
// never blocks a caller. What does not fit, or cannot be written, is counted, and an event "log_lost" stands in its place.
// [Log.Close] ends the goroutine after the queue was written, or after a short wait.
//
// Several processes may write one path: clients start a command twice, and a user who names a path expects everything
// in it (each line has its proxy_pid). So lines are appended whole under an advisory lock of the file, and a
// process that finds the file full while it holds that lock rotates it. The others notice that the path names another
// file and open that one. The same check handles a rotation by hand ("mv mcp_audit.log mcp_audit.log.1").
package audit
