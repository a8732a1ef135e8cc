// Package event is the vocabulary of everything that can happen to a process that outlive keeps alive.
//
// All sinks use it: the log lines on stderr, the audit log, status, and others. The vocabulary is closed: a new kind
// of event needs a new [Type] here, with a doc comment that says when it is emitted and which attributes it has.
//
// The package starts no goroutine. An [Event] is a value; a [Sink] must not block its caller.
package event
