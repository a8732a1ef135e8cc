// Package enginetest tests what every [engine.Engine] promises, in real time: [Run] is called with what opens some members of one
// fleet, in memory or over a network.
//
// Reads may be old, so a test that has written waits until the value is seen. Goroutines: those of a test, which waits for them.
package enginetest
