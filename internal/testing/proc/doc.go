// Package proc reads what /proc tells of processes and of the machine: memory, descriptors, threads, parents, command lines.
//
// A process that has ended, or that may not be looked at, has no figures: NaN, none, or false. On systems without /proc the
// package is empty. It starts no goroutine.
package proc
