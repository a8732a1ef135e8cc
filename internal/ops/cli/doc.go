// Package cli is the command line: one file for each verb, and wiring.go, which maps flags, environment and directories
// to the options of the packages that do the work. Only this package reads flags and environment, and prints for people
// on stdout.
//
// Its goroutines: one that receives signals (signals.go), one that removes old logs and what is left over, and in the demo the
// steady caller. All but the short removal end with the verb that started them.
package cli
