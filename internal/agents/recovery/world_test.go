package recovery

import (
	"slices"
	"time"
)

// everything can be done with such an agent.
var everything = Capabilities{Nudge: true, Ask: true, KillTool: true, Interrupt: true, Resume: true, Restart: true, Fresh: true}

// agent is one of a simulated fleet.
type agent struct {
	problem Problem
	h       History
	can     Capabilities
	pol     Policy
	deaf    bool // nothing that is done helps
}

// fleet is a simulated fleet with the loop of a monitor around it.
type fleet struct {
	now    time.Time
	f      Fleet
	shared FleetPolicy
	agents map[string]*agent
	told   map[string]time.Time // when a human was first told of an agent's trouble, alone or with others
	masses []string             // of which a human was told
	log    []Act
}

func newFleet(names ...string) *fleet {
	w := &fleet{now: t0, shared: Default().Fleet, agents: map[string]*agent{}, told: map[string]time.Time{}}
	for _, n := range names {
		w.agents[n] = &agent{problem: Problem{Agent: n, Phase: 1, Confidence: "high"}, can: everything, pol: Default(), deaf: true}
	}
	return w
}

// shares gives all the same limits.
func (w *fleet) shares(p FleetPolicy) {
	w.shared = p
	for _, a := range w.agents {
		a.pol.Fleet = p
	}
}

func (w *fleet) names() []string {
	var list []string
	for n := range w.agents {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// fail begins a trouble.
func (w *fleet) fail(name, class, stall string) {
	a := w.agents[name]
	a.problem.Class, a.problem.Stall, a.problem.Since = class, stall, w.now
}

// recover gives new evidence.
func (w *fleet) recover(name string) {
	a := w.agents[name]
	a.problem.Sequence++
	a.problem.Class, a.problem.Stall = "", ""
	a.h.Open = false
	var news bool
	if a.h.Acts, news = Prove(a.h.Acts, a.problem.Sequence, w.now); news {
		w.f = w.f.Recovered(name, w.now)
	}
}

// tick is one look of the monitor. order is in which the agents are judged.
func (w *fleet) tick(order []string) map[string]Decision {
	var problems []Problem
	for _, n := range order {
		problems = append(problems, w.agents[n].problem)
	}
	made := map[string]Decision{}
	w.f = w.f.See(problems, w.shared, w.now)
	for _, m := range w.f.Masses {
		if m.Told && m.Released.IsZero() { // the message of a mass names who has joined it since, as followMasses of the monitor has it
			for _, member := range m.Members {
				w.tell(member)
			}
		}
	}
	for _, n := range order {
		a := w.agents[n]
		d := Decide(a.problem, a.h, a.pol, a.can, w.f, w.now)
		w.f = w.f.Note(a.problem, d, w.now)
		made[n] = d
		switch {
		case d.Rung == Escalate && d.Mass != "":
			w.masses = append(w.masses, d.Mass)
			for _, m := range w.f.Masses {
				if m.Key == d.Mass {
					for _, member := range m.Members {
						w.tell(member)
					}
				}
			}
		case d.Rung == Escalate:
			a.h.Open = true
			w.tell(n)
		case d.Rung != Nothing:
			act := d.Act(a.problem, w.now)
			a.h.Acts = append(a.h.Acts, act)
			w.log = append(w.log, act)
			if d.Rung.Acts() && !a.deaf {
				w.recover(n)
			}
		}
	}
	return made
}

func (w *fleet) tell(name string) {
	if _, before := w.told[name]; !before {
		w.told[name] = w.now
	}
}

// run lets time pass in steps of five seconds.
func (w *fleet) run(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(5 * time.Second) {
		w.tick(w.names())
	}
}

// taken are the rungs of one agent so far, with the minute of each.
func (w *fleet) taken(name string) (list []string) {
	for _, a := range w.log {
		if a.Agent == name {
			list = append(list, string(a.Rung)+" "+a.At.Sub(t0).String())
		}
	}
	return list
}

// up reports whether new evidence of an act had come when another was done, be it at that same look.
func (w *fleet) up(act Act, by time.Time) bool {
	return slices.ContainsFunc(w.agents[act.Agent].h.Acts, func(a Act) bool {
		return a.At.Equal(act.At) && a.At.Before(by) && !a.Proved.IsZero() && !a.Proved.After(by)
	})
}

// least is what every history must keep, counted anew from the log alone.
func (w *fleet) least(t interface{ Fatalf(string, ...any) }) {
	for i, a := range w.log {
		if !a.Rung.Touches() || a.Refunded {
			continue
		}
		starts, same, host, account := 0, map[string]int{}, 0, 0
		for _, b := range w.log[:i+1] {
			if b.Refunded || !b.Rung.Touches() {
				continue
			}
			if gap := a.At.Sub(b.At); gap < time.Minute && b.Agent == a.Agent && gap > 0 {
				t.Fatalf("%s of %s comes %s after %s", a.Rung, a.Agent, gap, b.Rung)
			}
			if a.At.Sub(b.At) < w.shared.StartFor && !w.up(b, a.At) {
				if b.Host == a.Host {
					host++
				}
				if b.Account == a.Account && a.Account != "" {
					account++
				}
			}
			if b.Agent == a.Agent && b.Rung.Starts() && b.Class == a.Class {
				if budget := remediesOf(a.Class, a.Stall).budget; a.At.Sub(b.At) < budget.Window && (!budget.PerPhase || b.Phase == a.Phase) {
					same[a.Class]++
				}
			}
			if b.Agent == a.Agent && b.Rung.Starts() && a.At.Sub(b.At) < 15*time.Minute {
				starts++
			}
		}
		if host > w.shared.HostStarts || account > w.shared.AccountStarts {
			t.Fatalf("with %s of %s, %d start on its host and %d of its account", a.Rung, a.Agent, host, account)
		}
		if n, budget := same[a.Class], remediesOf(a.Class, a.Stall).budget; a.Rung.Starts() && n > budget.Max {
			t.Fatalf("%s was started %d times for %s, the budget is %s", a.Agent, n, a.Class, budget)
		}
		if starts > 5 {
			t.Fatalf("%s was started %d times in 15 minutes", a.Agent, starts)
		}
	}
}
