// Package logline is what outlive says on stderr, to the letter of WD-15, and what becomes of a server's stderr.
//
// [Writer] turns events into lines and passes the server's own stderr through between them. [Kept] keeps that stderr in
// a rotated file and the last of it in memory.
//
// Each of the two starts one goroutine, the only one that writes to its destination, and a bounded queue in front of it.
// No method waits for that. Who reads a server's stderr waits for Room before it reads on: the server then is as fast as
// whoever reads its words, and nothing is lost. A destination that takes nothing for two seconds, a stderr that nobody
// reads or a disk that hangs, is waited for no longer until it has caught up; what does not fit is dropped, counted, and
// its size is written in its place. Close ends the goroutine once the queue is written. If the destination blocks for ever
// Close gives up after a short wait, and the goroutine stays in that one write.
package logline
