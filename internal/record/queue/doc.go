// Package queue writes to a destination that may be slow, without ever blocking whoever has something to write.
//
// The log lines, a server's kept stderr and the audit log are a [Queue] each, so that none is dropped for another, or waits for it.
//
// [New] starts one goroutine, the only one that writes to the destination. [Queue.Put] copies bytes into a bounded buffer. A
// caller that can wait, as the one that reads a server's stderr does, waits for [Queue.Room] first: then nothing is lost to a
// slow destination. One that accepts nothing for two seconds (a stderr that is not read, a disk that hangs) is no longer waited
// for until it has caught up. What does not fit, or cannot be written, is dropped and counted, and its size is written in its
// place as soon as the destination accepts something again.
//
// [Queue.Close] ends the goroutine once everything is written. If the destination blocks for ever, Close gives up after a short
// wait, and the goroutine remains in that one write.
package queue
