// Package seen decides what of a machine's words is new to who reads them. It is pure.
//
// A machine numbers its events, and goes on counting when its program is started anew: a reader that knows the last number it was shown
// knows which it has missed, and is never shown one twice, whatever the registry between them has lost or told again. What is told again
// is told by the same run of the program with a number that is not higher. Another run takes the place of the one before.
//
// Starts no goroutine.
package seen
