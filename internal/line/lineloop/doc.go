// Package lineloop moves lines between descriptors: it reads whole lines in bounded memory, queues what a slow reader
// does not take yet, and waits for all of it in one place.
//
// A [Loop] owns any number of [Source]s (lines come in) and [Sink]s (lines go out). Everything that belongs to a loop
// is touched by one goroutine only, the one that calls [Loop.Run]; other goroutines reach it with [Loop.Post]. There
// is no channel and no other goroutine between a descriptor and its callback, because on the way of one small line
// each hand-over costs as much as the kernel's own work.
//
// Two loops exist. Where poll(2) works on pipes (loop_poll.go) the loop waits for the raw descriptors itself. Elsewhere
// (loop_stream.go, Windows) each source has a goroutine that reads and waits until the loop has digested what it read,
// and each sink one that writes; they end when their descriptor is closed. Buffers and queues are the same for both.
//
// A source rests with a buffer of 256 KiB. A longer line gets a larger one, which is shared by those that keep the line ([Hold])
// and which is kept for the next long line; after ten to twenty seconds without one the memory goes back to the system. A
// line is handed on only when it is whole: a crash in its middle never reaches the other side.
package lineloop
