// Package logline is what outlive says on stderr, to the letter of S0 7.3, and what becomes of a server's stderr.
//
// [Writer] turns events into lines and passes the server's own stderr through between them. [Kept] keeps that stderr in
// a rotated file and the last of it in memory.
//
// Each of the two starts one goroutine, the only one that writes to its destination, and a bounded queue in front of
// it: a stderr that nobody reads, or a full disk, never holds up a caller; what does not fit is counted. Close ends the
// goroutine once the queue is written. If the destination blocks for ever Close gives up after a short wait, and the
// goroutine stays in that one write.
package logline
