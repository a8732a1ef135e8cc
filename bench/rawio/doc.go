// Package rawio holds the three system calls that the benchmark's client and
// its byte relay are made of: read, write and poll, on raw descriptors.
//
// On Linux they bypass the Go scheduler: the calling thread keeps its
// processor while it waits. That is the cheapest way to wait that Go has, and
// it is for programs that do nothing else: as long as one waits so, the
// runtime's monitor thread never sleeps, which costs some 300 wake-ups a second.
//
// The package starts no goroutine. On Windows it is empty.
package rawio
