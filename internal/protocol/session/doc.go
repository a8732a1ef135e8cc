// Package session stores what one client has sent to its server, as far as a new process needs it, and what lists the
// client has read, as far as changes must be announced.
//
// A [Record] is a session in a form that another program can continue from.
//
// A [Session] belongs to the driver of the client's connection; it starts no goroutine and has no lock. It keeps raw
// JSON as the client sent it, so that it is replayed unchanged.
package session
