package faults

import (
	"fmt"
	"strings"
	"time"
)

// Result is one cell.
type Result struct {
	Fault Fault
	Shape string
	// Before is how many processes the fault should have ended. 0: none.
	Before int
	// Left are the command lines of those that it did not end in time. Nobody is left of a cell that is as promised.
	Left []string
	// Gone is from the fault, or the next start, until the last of them had ended.
	Gone time.Duration
	// Back is from the fault until another process answered a call. 0: none is to come back.
	Back time.Duration
	// Note is what a reader must know beside it.
	Note string
}

// String is the cell of a table: who is left, after how long, and what came back.
func (r Result) String() string {
	var parts []string
	switch {
	case len(r.Left) > 0:
		parts = append(parts, fmt.Sprintf("**%d of %d**", len(r.Left), r.Before))
	case r.Before > 0:
		parts = append(parts, "none, "+brief(r.Gone))
	}
	if r.Back > 0 {
		parts = append(parts, "back "+brief(r.Back))
	}
	if r.Note != "" {
		parts = append(parts, r.Note)
	}
	return strings.Join(parts, "; ")
}

// brief writes a duration with two digits that count.
func brief(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	default:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3)
	}
}
