// Package proc reads what /proc tells of processes and of the machine: memory, descriptors, threads, parents, command lines. It also
// kills one process, and never a group.
//
// A process that has ended, or that may not be looked at, has no figures: NaN, none, or false. Systems without /proc have the kill
// alone, and Windows nothing. It starts no goroutine.
package proc
