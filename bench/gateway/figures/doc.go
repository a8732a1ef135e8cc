// Package figures turns measurements into a report: middle values, tables, bars and the measured part of a page.
//
// It starts no goroutine.
package figures
