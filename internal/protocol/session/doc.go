// Package session remembers what one client has told its server, as far as a new process must be told it again, and
// what the client was shown, as far as a difference must be announced.
//
// A [Record] is a session as it survives the program: all that another one must know to go on with the client.
//
// A [Session] belongs to the driver of the client's connection; it starts no goroutine and locks nothing. It keeps
// raw JSON as the client sent it: what is replayed is what was said.
package session
