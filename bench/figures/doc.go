// Package figures turns measurements into a report: middle values, tables, bars, the machine they were taken on, and the
// measured parts of a page. What was measured, and how it is worded, belongs to the commands that use it: bench and
// bench/gateway write their own sections of one page, docs/BENCHMARKS.md, and leave each other's alone.
//
// It starts no goroutine. It reads the machine's description in /proc and writes the pages it is told to.
package figures
