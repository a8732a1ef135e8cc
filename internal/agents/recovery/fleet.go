package recovery

import (
	"slices"
	"time"
)

// Fleet is the shared state of all agents: what was done last, who waits for a turn, and who fails together. Its methods
// do not change the receiver. The zero value is empty.
type Fleet struct {
	// Acts are those that touched a process, of the last window of the global limit.
	Acts []Act `json:"acts,omitempty"`
	// Waiting are the agents that wait for a turn, in order.
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

// See takes all problems of one look before any is decided: agents without one leave the queue.
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

// Note records a decision.
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

// Recovered records new evidence of an agent after an action, or while it was a member of a mass: the others may follow.
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

// turn reports whether an agent's process may be acted on now.
func (f *Fleet) turn(p Problem, pol FleetPolicy, now time.Time) bool {
	ahead := f.Waiting
	if place := f.waits(p.Agent); place >= 0 {
		ahead = f.Waiting[:place]
	}
	return f.paced(len(ahead), pol.Global, now) && f.room(p, ahead, pol, now)
}

// paced asks the limit of all agents.
func (f *Fleet) paced(ahead int, global Budget, now time.Time) bool {
	u := global.usage(times(only(f.Acts, func(a Act) bool { return near(a.At, now, global.Window) })), now)
	return global.unlimited() || ahead < u.Max-u.Used
}

// room checks whether the agent's host and account have room for one more start. Earlier agents take their places first;
// an agent that waits for its account takes no place of its host.
func (f *Fleet) room(p Problem, ahead []Waiter, pol FleetPolicy, now time.Time) bool {
	hosts, accounts := map[string]int{}, map[string]int{}
	fits := func(host, account string) bool {
		return (pol.HostStarts <= 0 || hosts[host] < pol.HostStarts) &&
			(pol.AccountStarts <= 0 || account == "" || accounts[account] < pol.AccountStarts)
	}
	take := func(host, account string) { hosts[host]++; accounts[account]++ }
	for _, a := range f.Acts {
		if a.Proved.IsZero() && near(a.At, now, pol.StartFor) {
			take(a.Host, a.Account)
		}
	}
	for _, w := range ahead {
		if fits(w.Host, w.Account) {
			take(w.Host, w.Account)
		}
	}
	return fits(p.Host, p.Account)
}

// Held is the mass that an agent waits in; nil: none.
func (f *Fleet) Held(agent string) *Mass {
	for i := range f.Masses {
		if m := &f.Masses[i]; m.Released.IsZero() && slices.Contains(m.Members, agent) {
			return m
		}
	}
	return nil
}
