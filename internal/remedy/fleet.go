package remedy

import (
	"slices"
	"time"
)

// Fleet is what all agents together are about: what was done last, who waits for a turn, and who fails together. Its
// methods leave the receiver as it was. The zero value is a fleet in which nothing has happened.
type Fleet struct {
	// Acts are those that touched a process, of the last window of the global limit.
	Acts []Act `json:"acts,omitempty"`
	// Queue are those who wait for a turn, the first first.
	Queue []string `json:"queue,omitempty"`
	// Masses are the incidents of many.
	Masses []Mass `json:"masses,omitempty"`
	// Sightings are the troubles that may have one cause.
	Sightings []Sighting `json:"sightings,omitempty"`
}

// See is told all problems of one look, before any of them is decided on: who is not among them has left the queue.
func (f Fleet) See(problems []Problem, pol FleetPolicy, now time.Time) Fleet {
	troubled := map[string]bool{}
	for _, p := range problems {
		if p.Class != "" {
			troubled[p.Agent] = true
		}
	}
	g := f
	g.Queue = slices.DeleteFunc(slices.Clone(f.Queue), func(a string) bool { return !troubled[a] })
	g.Acts = only(f.Acts, func(a Act) bool { return near(a.At, now, pol.Global.Window) })
	g.Sightings = sight(f.Sightings, problems, pol.HostWindow, now)
	g.Masses = group(f.Masses, g.Sightings, troubled, pol, now)
	return g
}

// Note is told what was decided about a problem.
func (f Fleet) Note(p Problem, d Decision, now time.Time) Fleet {
	g := f
	waits := slices.Contains(f.Queue, p.Agent)
	switch {
	case d.Queued && !waits:
		g.Queue = append(slices.Clone(f.Queue), p.Agent)
	case !d.Queued && waits:
		g.Queue = slices.DeleteFunc(slices.Clone(f.Queue), func(a string) bool { return a == p.Agent })
	}
	if d.Rung.Touches() {
		g.Acts = append(slices.Clone(f.Acts), d.Act(p, now))
	}
	if d.Mass != "" {
		g.Masses = slices.Clone(f.Masses)
		for i := range g.Masses {
			if m := &g.Masses[i]; m.Key == d.Mass {
				m.note(p.Agent, d, now)
			}
		}
	}
	return g
}

// Refund gives the turn of an act back that was not done.
func (f Fleet) Refund(a Act) Fleet {
	g := f
	g.Acts = only(f.Acts, func(b Act) bool { return b.Agent != a.Agent || !b.At.Equal(a.At) })
	return g
}

// Recovered is told that new evidence has come from an agent after something was done, or by itself while it was a
// member of a mass: the others may follow.
func (f Fleet) Recovered(agent string, now time.Time) Fleet {
	g := f
	g.Masses = slices.Clone(f.Masses)
	for i := range g.Masses {
		if m := &g.Masses[i]; slices.Contains(m.Members, agent) && m.Released.IsZero() {
			m.Released = now
		}
	}
	return g
}

// near reports whether t lies within the window. One far in the future, from before the clock was set back, does not:
// all agents would wait for the clock to come back to it.
func near(t, now time.Time, window time.Duration) bool {
	d := now.Sub(t)
	return d < window && -d < window
}

// turn reports whether an agent may touch a process now, and else when that may be.
func (f *Fleet) turn(agent string, global Budget, now time.Time) (bool, time.Time) {
	if global.unlimited() {
		return true, time.Time{}
	}
	var ts []time.Time
	for _, a := range f.Acts {
		if near(a.At, now, global.Window) {
			ts = append(ts, a.At)
		}
	}
	u, next := global.usage(ts, now)
	ahead := slices.Index(f.Queue, agent)
	if ahead < 0 {
		ahead = len(f.Queue)
	}
	if ahead < u.Max-u.Used {
		return true, time.Time{}
	}
	if next.IsZero() {
		next = now
	}
	return false, next
}

// held is the mass that an agent waits in, if any.
func (f *Fleet) held(agent string) *Mass {
	for i := range f.Masses {
		if m := &f.Masses[i]; m.Released.IsZero() && slices.Contains(m.Members, agent) {
			return m
		}
	}
	return nil
}
