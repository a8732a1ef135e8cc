package recovery

import (
	"slices"
	"time"
)

// Fleet is what all agents together are about: what was done last, who waits for a turn, and who fails together. Its
// methods leave the receiver as it was. The zero value is a fleet in which nothing has happened.
type Fleet struct {
	// Acts are those that touched a process, of the last window of the global limit.
	Acts []Act `json:"acts,omitempty"`
	// Waiting are those who wait for a turn, the first first.
	Waiting []Waiter `json:"waiting,omitempty"`
	// Masses are the incidents of many.
	Masses []Mass `json:"masses,omitempty"`
	// Sightings are the troubles that may have one cause.
	Sightings []Sighting `json:"sightings,omitempty"`
}

// Waiter is an agent that waits for its turn, and what it shares with others.
type Waiter struct {
	Agent   string `json:"agent"`
	Host    string `json:"host,omitempty"`
	Account string `json:"account,omitempty"`
}

// waits is the place of an agent in the queue; -1: it does not wait.
func (f *Fleet) waits(agent string) int {
	return slices.IndexFunc(f.Waiting, func(w Waiter) bool { return w.Agent == agent })
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
	g.Waiting = slices.DeleteFunc(slices.Clone(f.Waiting), func(w Waiter) bool { return !troubled[w.Agent] })
	g.Acts = only(f.Acts, func(a Act) bool { return near(a.At, now, max(pol.Global.Window, pol.StartFor)) })
	for i := range g.Acts { // an agent with new evidence is up: the next may start
		a := &g.Acts[i]
		up := func(p Problem) bool { return p.Agent == a.Agent && p.Class == "" && p.Sequence > a.Sequence }
		if a.Proved.IsZero() && slices.ContainsFunc(problems, up) {
			a.Proved = now
		}
	}
	g.Sightings = sight(f.Sightings, problems, pol.HostWindow, now)
	g.Masses = group(f.Masses, g.Sightings, troubled, pol, now)
	return g
}

// Note is told what was decided about a problem.
func (f Fleet) Note(p Problem, d Decision, now time.Time) Fleet {
	g := f
	place := f.waits(p.Agent)
	switch {
	case d.Queued && place < 0:
		g.Waiting = append(slices.Clone(f.Waiting), Waiter{Agent: p.Agent, Host: p.Host, Account: p.Account})
	case !d.Queued && place >= 0:
		g.Waiting = slices.Delete(slices.Clone(f.Waiting), place, place+1)
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
func (f *Fleet) turn(p Problem, pol FleetPolicy, now time.Time) (bool, time.Time) {
	ahead := f.Waiting
	if place := f.waits(p.Agent); place >= 0 {
		ahead = f.Waiting[:place]
	}
	if free, at := f.paced(len(ahead), pol.Global, now); !free {
		return false, at
	}
	return f.room(p, ahead, pol, now)
}

// paced asks the limit of all agents.
func (f *Fleet) paced(ahead int, global Budget, now time.Time) (bool, time.Time) {
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
	if ahead < u.Max-u.Used {
		return true, time.Time{}
	}
	if next.IsZero() {
		next = now
	}
	return false, next
}

// room asks whether the agent's host and account have room for one more start. Those who came earlier take their places first;
// an agent that waits for its account takes no place of its host.
func (f *Fleet) room(p Problem, ahead []Waiter, pol FleetPolicy, now time.Time) (bool, time.Time) {
	hosts, accounts := map[string]int{}, map[string]int{}
	fits := func(host, account string) bool {
		return (pol.HostStarts <= 0 || hosts[host] < pol.HostStarts) &&
			(pol.AccountStarts <= 0 || account == "" || accounts[account] < pol.AccountStarts)
	}
	take := func(host, account string) { hosts[host]++; accounts[account]++ }
	next := now
	for _, a := range f.Acts {
		if a.Proved.IsZero() && near(a.At, now, pol.StartFor) {
			take(a.Host, a.Account)
			if end := a.At.Add(pol.StartFor); !next.After(now) || end.Before(next) {
				next = end
			}
		}
	}
	for _, w := range ahead {
		if fits(w.Host, w.Account) {
			take(w.Host, w.Account)
		}
	}
	return fits(p.Host, p.Account), next
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
