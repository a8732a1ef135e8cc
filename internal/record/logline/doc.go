// Package logline writes outlive's log lines to stderr, exactly as in WD-15, and keeps a server's stderr.
//
// [Writer] turns events into lines and passes the server's own stderr through between them. [Kept] keeps that stderr
// in a file that is rotated, and its end in memory.
//
// Each of the two has a [queue.Queue], whose goroutine is the only one that writes to its destination. No method waits for
// it. The code that reads a server's stderr waits for Room before it reads on: then the server is as fast as the reader of its
// output, and nothing is lost.
package logline
