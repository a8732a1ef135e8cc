// Package fleetcases is the file by which this machine's member of a fleet, a process of its own, has the monitor here tell people of
// what concerns several machines: a machine that is silent, a cause that several share. The member writes it whole, the monitor reads
// it at each look: it opens an incident for each case, and closes it when the case is over.
//
// It is state, not commands: whichever of the two was killed reads the file again and goes on.
//
// Starts no goroutine.
package fleetcases
