// Package cli is the command line: one file for each verb, and wiring.go, which turns flags, environment and
// directories into the options of the packages that do the work. Only here are flags and environment read, and only
// here is anything printed for people on stdout.
//
// The package starts goroutines of its own for signals only (signals.go); they end with the verb that asked for them.
package cli
