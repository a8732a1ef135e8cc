package child

import "fmt"

// Stray is a descendant of an outlive that has ended.
type Stray struct {
	PID     int
	Outlive int    // the pid of that outlive
	Command string // its command line without secrets; "" when it cannot be read
}

// SweepReport is the result of [SweepStrays].
type SweepReport struct {
	Found []Stray // after the grace, in which a keeper may still be at work
	Left  []Stray // not permitted, or stuck in the kernel
}

// String is a line for a log.
func (r SweepReport) String() string {
	return fmt.Sprintf("%d leftover processes of earlier runs ended, %d left", len(r.Found)-len(r.Left), len(r.Left))
}

// Mechanism is one way to ensure that no process survives outlive.
type Mechanism struct {
	Name   string // "keeper", "job object" and so on
	InUse  bool   // by processes started from now on
	Detail string // what it does here, or why it is not available
}
