// Package enginemem is an engine in memory. All who use one [Engine] are one fleet; what it keeps ends with the
// process.
//
// Each Watch has one goroutine, which ends with its context; each request has one, which ends with its answer.
package enginemem
