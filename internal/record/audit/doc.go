// Package audit keeps the audit log: one JSON object a line (TP-8), rotated (TP-11).
//
// [Open] starts one goroutine, which owns the file; [Log.Emit] encodes an event and hands the line over a bounded
// channel, so that a slow or full disk never holds up a caller: what does not fit, or cannot be written, is counted.
// [Log.Close] ends the goroutine after what is queued was written, or after a second.
//
// Several processes may write one path: clients start a command twice, and a user who names a path wants everything
// in it (each line carries its proxy_pid). So each line is appended whole under an advisory lock of the file, and
// a process that finds the file full while holding that lock rotates it. The others notice that the path names another file
// and open that one. The same check makes a rotation by hand ("mv mcp_audit.log mcp_audit.log.1") work.
package audit
