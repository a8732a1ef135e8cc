// Package sessionstore keeps the records of HTTP sessions beyond the life of the gateway that serves them, for the front of
// package streamhttp (streamhttp.Store).
//
// A store maps a key, which reveals nothing of the session's id, to a record, which is one JSON value, and the time
// until which it is valid. A [Store] is a log on disk, or lasts as long as the process.
//
// The log has one line for each change, and is written anew when more than half of it is outdated. A file for each session
// would be simpler, but ext4 writes a renamed file's blocks out at once: 0.6 to 2 ms for each change, against 10 µs. A
// process that is killed loses at most the line that it was writing; readers pass over what is not a whole line, and count it.
// What a full disk does not take stays in memory until there is room.
//
// Stores start no goroutine. Their methods may be called from any goroutine and block for as long as the disk takes;
// calls for one key must not overlap.
package sessionstore
