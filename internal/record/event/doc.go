// Package event is the one vocabulary of what can happen to a thing that outlive keeps alive.
//
// Every sink hangs on it: the log lines on stderr, the audit log, status, and whatever else wants to be told.
// The vocabulary is closed: a new happening is a new [Type] here, with a doc comment that says when it is emitted
// and which attributes it carries.
//
// The package starts no goroutine. An [Event] is a value; a [Sink] must not block its caller.
package event
