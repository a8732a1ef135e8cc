// Package rotation appends to a log that is rotated when it is full, and finds the rotated ones beside it. What it writes it does not
// know. It starts no goroutine.
//
// Several processes may write one path: clients start a command twice, and a user who names a path expects everything in it. So bytes are
// appended under an advisory lock of the file, and a process that finds the file full while it holds that lock rotates it. The others
// notice that the path names another file and open that one. The same check handles a rotation by hand ("mv mcp_audit.log
// mcp_audit.log.1").
package rotation
