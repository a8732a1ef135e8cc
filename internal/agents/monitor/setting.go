package monitor

// setting is what evidence is gathered with at one look.
type setting struct {
	now       Moment
	sleeps    []Sleep
	grace     string // why silence is not evidence now
	graceDead bool
	lost      string // why the PIV registry is not what the agents beat into
	processes processes
	sources   *sources
}
