// Package seen decides what of a machine's words is new to who reads them. It is pure.
//
// A machine numbers its events, and goes on counting when its program is started anew: a reader that knows the last number it was shown
// knows which it has missed, and is never shown one twice, whatever the registry between them has lost or told again of one run. What is told
// again is told by the same run of the program with a number that is not higher. Another run takes the place of the one before.
//
// So an earlier run that a registry tells again, such as after its disk was restored, is taken for another one: the last events of that run are
// told again, and then those of the newer one. To know it a position would have to name all runs, and that is rarer than a start.
//
// Starts no goroutine.
package seen
