package monitor

// setting has the inputs for gathering evidence at one look.
type setting struct {
	now       Clocks
	sleeps    []Sleep
	grace     string // why silence is not evidence now
	graceDead bool
	lost      string // why the PIV registry does not show the agents' current heartbeats
	processes processes
	sources   *sources
	kept      *kept
}
