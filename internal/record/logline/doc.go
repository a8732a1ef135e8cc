// Package logline writes outlive's log lines to stderr, exactly as in WD-15, and keeps a server's stderr.
//
// [Writer] turns events into lines and passes the server's own stderr through between them. [Kept] keeps that stderr
// in a rotated file, and its end in memory.
//
// Each of the two starts one goroutine, the only one that writes to its destination, with a bounded queue. No method
// waits for that goroutine. The code that reads a server's stderr waits for Room before it reads on: then the server
// is as fast as the reader of its output, and nothing is lost. A destination that accepts nothing for two seconds (a
// stderr that is not read, a disk that hangs) is no longer waited for until it has caught up; what does not fit is
// dropped and counted, and its size is written in its place. Close ends the goroutine once the queue is written. If
// the destination blocks for ever, Close gives up after a short wait, and the goroutine remains in that one write.
package logline
