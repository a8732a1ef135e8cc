// Package lineloop moves lines between descriptors: it reads whole lines in bounded memory, queues what a slow reader
// does not accept yet, and waits for all descriptors in one place.
//
// A [Loop] owns any number of [Source]s (lines come in) and [Sink]s (lines go out). Everything that belongs to a loop
// is used by one goroutine only, the one that calls [Loop.Run]; other goroutines reach it with [Loop.Post]. There is
// no channel and no other goroutine between a descriptor and its callback, because for a small line each hand-over
// would cost as much as the kernel's own work.
//
// There are two implementations. Where poll(2) works on pipes (loop_poll.go) the loop waits for the raw descriptors
// itself. Elsewhere (loop_stream.go, Windows) each source has a goroutine that reads and then waits until the loop
// has processed what it read, and each sink has one that writes; they end when their descriptor is closed. Buffers
// and queues are the same for both.
//
// A source normally has a buffer of 256 KiB. A longer line gets a larger one, which is shared by all that keep the
// line ([Hold]) and is then kept for the next long line; after ten to twenty seconds without a long line the memory
// is returned to the system, as is what any other traffic has left once there is none any more. A line is passed on only when it is complete: after a crash in its middle no part of it
// reaches the other side.
package lineloop
