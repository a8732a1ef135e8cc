package logline

import "slices"

// part is what a process is to the one that serves.
type part uint8

const (
	lead  part = iota // it serves, or is to serve next because none does
	next              // it is to take over in a planned restart
	spare             // it stands by
	old               // it has served, or was to, and is no longer wanted
)

// cast is who plays which part, as far as events show. Only the generation tells processes apart.
type cast struct {
	leads   int   // the generation that serves or served last
	up      []int // the processes that run
	ready   []int // those that could take over at once, the oldest first
	reload  int   // the last process that was started to take over; of meaning while it is not the lead
	reloads bool  // there was one
}

// running reports whether the server runs, whatever runs beside it.
func (c *cast) running() bool { return slices.Contains(c.up, c.leads) }

// starts notes that a process is about to be spawned, because of a requested restart or not.
func (c *cast) starts(gen int, requested bool) part {
	if c.running() && requested {
		c.reload, c.reloads = gen, true
	}
	return c.beside(gen)
}

// spawned notes that a process runs. While no other one serves, it will.
func (c *cast) spawned(gen int) part {
	p := c.beside(gen)
	if p == lead {
		c.leads = gen
	}
	c.up = append(c.up, gen)
	return p
}

// exited notes that a process is gone.
func (c *cast) exited(gen int) part {
	p := c.beside(gen)
	if gen < c.leads {
		p = old
	} else if gen == c.leads {
		p = lead
	}
	c.up = without(c.up, gen)
	c.ready = without(c.ready, gen)
	return p
}

// beside is the part of a process that is newer than the one that serves.
func (c *cast) beside(gen int) part {
	switch {
	case c.reloads && gen == c.reload && gen != c.leads:
		return next
	case c.running() && gen != c.leads:
		return spare
	}
	return lead
}

// fit notes that a spare could serve.
func (c *cast) fit(gen int) { c.ready = append(c.ready, gen) }

// serves notes which process serves.
func (c *cast) serves(gen int) {
	c.leads = gen
	c.ready = without(c.ready, gen)
}

// switches notes that a spare takes over at once, without any further event; it reports false if there is none.
func (c *cast) switches() bool {
	if !c.running() || len(c.ready) == 0 {
		return false
	}
	c.serves(c.ready[0])
	return true
}

func without(gens []int, gen int) []int {
	return slices.DeleteFunc(gens, func(one int) bool { return one == gen })
}
