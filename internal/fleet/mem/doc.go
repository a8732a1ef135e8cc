// Package mem is an engine in memory: for tests, and for a fleet of one machine, where nobody else can be reached anyway. All who
// use one [Engine] are one fleet; what it keeps ends with the process.
//
// Each Watch has one goroutine, which ends with its context; each request has one, which ends with its answer.
package mem
