package logline

// part is the role of a process.
type part uint8

const (
	lead  part = iota // it serves, or will serve next because no process does
	next              // it will take over in a planned restart
	spare             // it is a spare
	old               // it has served, or was to, and is no longer needed
)

// processTable is the roles of all processes, as far as events show them. Processes are distinguished by their generation
// only.
type processTable struct {
	leads  int          // the generation that serves, or served last
	coming part         // of the process that is being spawned
	runs   map[int]part // the role for which each running process was spawned
}

// running reports whether the server runs, regardless of other processes.
func (c *processTable) running() bool {
	_, ok := c.runs[c.leads]
	return ok
}

// starts records that a process is about to be spawned, and whether a restart was requested.
func (c *processTable) starts(requested bool) part {
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

// spawned records that a process runs.
func (c *processTable) spawned(gen int) part {
	if c.runs == nil {
		c.runs = map[int]part{}
	}
	c.runs[gen] = c.coming
	if c.coming == lead {
		c.leads = gen
	}
	return c.coming
}

// exited records that a process has ended.
func (c *processTable) exited(gen int) part {
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

// serves records which process serves from now on.
func (c *processTable) serves(gen int) { c.leads = gen }
