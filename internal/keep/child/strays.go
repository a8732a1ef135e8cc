package child

import "fmt"

// Stray is a process that an outlive had started, directly or through others, and that is still there although this
// outlive is gone.
type Stray struct {
	PID     int
	Outlive int    // the pid that outlive had
	Command string // its command line without secrets; "" when it cannot be read
}

// SweepReport tells what [SweepStrays] did.
type SweepReport struct {
	Found []Stray // after the grace, when a keeper that is still at work has had its time
	Left  []Stray // not ours to end, or stuck in the kernel
}

// String is a line for a log.
func (r SweepReport) String() string {
	return fmt.Sprintf("%d leftover processes of earlier runs ended, %d left", len(r.Found)-len(r.Left), len(r.Left))
}

// Mechanism is one of the ways in which nothing survives outlive.
type Mechanism struct {
	Name   string // "keeper", "job object" and so on
	InUse  bool   // by processes started from now on
	Detail string // what it does here, or why it does not
}
