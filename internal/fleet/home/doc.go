// Package home is a machine's monitor towards the fleet: it carries out the commands that the machine's gate lets through, as requests
// to the monitor, which alone does anything about its agents.
//
// The monitor compares the incarnation in its own loop, and writes down what it is about to do before it does it; that is the next
// incarnation. The command's id is the request's, so a command that comes again gets the answer of the first time.
//
// Starts no goroutine.
package home
