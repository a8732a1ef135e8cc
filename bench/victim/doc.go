// Command victim is a server with descendants that get away from it; see package faults. It starts no goroutine but
// those of the scripted server that it is.
package main
