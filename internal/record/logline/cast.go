package logline

// part is what a process is to the one that serves.
type part uint8

const (
	lead  part = iota // it serves, or is to serve next because none does
	next              // it is to take over in a planned restart
	spare             // it stands by
	old               // it has served, or was to, and is no longer wanted
)

// cast is who plays which part, as far as the events show it. Only the generation tells processes apart.
type cast struct {
	leads  int          // the generation that serves, or was the last to do so
	coming part         // of the process that is being spawned
	runs   map[int]part // what each process that runs was spawned for
}

// running reports whether the server runs, whatever runs beside it.
func (c *cast) running() bool {
	_, ok := c.runs[c.leads]
	return ok
}

// starts notes that a process is about to be spawned, because a restart was requested or not.
func (c *cast) starts(requested bool) part {
	switch {
	case !c.running():
		c.coming = lead
	case requested:
		c.coming = next
	default:
		c.coming = spare
	}
	return c.coming
}

// spawned notes that a process runs.
func (c *cast) spawned(gen int) part {
	if c.runs == nil {
		c.runs = map[int]part{}
	}
	c.runs[gen] = c.coming
	if c.coming == lead {
		c.leads = gen
	}
	return c.coming
}

// exited notes that a process is gone.
func (c *cast) exited(gen int) part {
	p := c.runs[gen]
	delete(c.runs, gen)
	switch {
	case gen == c.leads:
		return lead
	case gen < c.leads:
		return old
	}
	return p
}

// serves notes which process serves from now on.
func (c *cast) serves(gen int) { c.leads = gen }
