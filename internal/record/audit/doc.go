// Package audit writes the audit log: one JSON object a line (TP-8), rotated (TP-11).
//
// [Open] starts one goroutine, which owns the file. [Log.Emit] encodes an event and passes the line to it through a
// bounded channel, so that a slow or full disk never blocks a caller: what does not fit, or cannot be written, is
// counted. [Log.Close] ends the goroutine after the queue was written, or after a second.
//
// Several processes may write one path: clients start a command twice, and a user who names a path expects everything
// in it (each line has its proxy_pid). So each line is appended completely under an advisory lock of the file, and a
// process that finds the file full while it holds that lock rotates it. The others notice that the path names another
// file and open that one. The same check handles a rotation by hand ("mv mcp_audit.log mcp_audit.log.1").
package audit
