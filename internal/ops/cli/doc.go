// Package cli is the command line: one file for each verb, and wiring.go, which turns flags, environment and
// directories into the options of the packages that do the work. Only here are flags and environment read, and only
// here is anything printed for people on stdout.
//
// Goroutines of its own: one that takes signals (signals.go), one that opens the control socket beside the server's
// first start (control.go), one that clears old logs away, and in the demo the steady caller. All but the clearing
// away, which is short, end with the verb that started them.
package cli
