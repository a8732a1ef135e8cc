package child

import "fmt"

// Stray is a descendant of an outlive that has ended.
type Stray struct {
	PID     int    `json:"pid"`
	Outlive int    `json:"outlive_pid"` // the pid of that outlive
	Command string `json:"command"`     // its command line without secrets; "" when it cannot be read
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
	Name   string `json:"name"`   // "keeper", "job object" and so on
	InUse  bool   `json:"in_use"` // by processes started from now on
	Detail string `json:"detail"` // what it does here, or why it is not available
}
