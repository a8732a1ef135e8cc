// Package figures turns measurements into a report: middle values, tables, bars, the machine they were taken on, and sections
// of a page. What was measured, and how it is worded, belongs to the programs that use it: each part of bench writes its own
// section of docs/BENCHMARKS.md, and packaging its own of docs/INSTALL.md.
//
// It starts no goroutine. It reads the machine's description in /proc and writes the pages it is told to.
package figures
