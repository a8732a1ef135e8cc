// Package lazyregexp holds regular expressions that cost nothing until they are used. Every outlive runs the
// initialisers of all rooms, also of those that it never enters, and a regular expression compiled there costs each of them
// microseconds and memory. So a room declares its patterns, and the first text that is held against one compiles it.
//
// It starts no goroutine; a pattern may be used by many at once.
package lazyregexp
