// Package tap hands the messages between clients and servers on to those who watch them, while somebody does.
//
// A [Tap] is asked with [Tap.On] whether anybody watches, which is one atomic load, and is given each message with [Tap.Put]. Put copies
// what it needs and never waits: each [Reader] has room for a number of messages, and those beyond are only counted until it has taken
// what is there. What is taken is written as a line of JSON by [Message.AppendJSON], and read back as a [Record].
//
// Nothing is stored beyond that room. The package starts no goroutine.
package tap
