package monitor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/escalate"
	"github.com/outlive-mcp/outlive/internal/remedy"
	"github.com/outlive-mcp/outlive/internal/roster"
)

// fleetPolicy is what holds for all agents together: what the first says that says anything.
func (p *page) fleetPolicy() remedy.FleetPolicy {
	if len(p.Agents) == 0 || !p.declared() {
		return remedy.FleetPolicy{}
	}
	return p.Agents[0].recovery.Fleet
}

// shareFleet gives all agents of a page the same: what the first says that says anything, each key for itself.
func (p *page) shareFleet() {
	fleet := remedy.Default().Fleet
	var said roster.AtOnce
	for _, a := range p.Agents {
		b := a.Declared.Budget
		if b.Global.Window > 0 && fleet.Global == (remedy.Budget{}) {
			fleet.Global = budget(b.Global)
		}
		said.Host, said.Account = cmp.Or(said.Host, b.AtOnce.Host), cmp.Or(said.Account, b.AtOnce.Account)
	}
	fleet.HostStarts, fleet.AccountStarts = cmp.Or(said.Host, fleet.HostStarts), cmp.Or(said.Account, fleet.AccountStarts)
	for i := range p.Agents {
		p.Agents[i].recovery.Fleet = fleet
	}
}

// escalateMass tells a human once of many agents that fail together.
func (r *round) escalateMass(ctx context.Context, c *examined, d remedy.Decision) error {
	key := escalate.Key{Agent: d.Mass, Class: escalate.Mass}
	f := r.facts(c, d)
	f.Name, f.Phase, f.Severity, f.Request, f.Input, f.Body = massName(d.Mass), "", escalate.Critical, "", "", ""
	f.Restart, f.Resume, f.Stop, f.Action = false, false, false, "one of them is tried first, the others wait"
	f.Members = r.members(d.Mass)
	return r.raise(ctx, r.agentOf(escalate.Incident{Key: key}), key, f, c.entryOf(r, d), nil)
}

// massName is what a mass is called: "account claude (limit)".
func massName(key string) string {
	shared, cause, _ := strings.Cut(key, ":")
	name := cause
	if i := strings.LastIndex(cause, ":"); i >= 0 {
		name, cause = cause[:i], cause[i+1:]
	}
	return shared + " " + name + " (" + cause + ")"
}

func (r *round) members(key string) []string {
	for _, m := range r.fleet.Masses {
		if m.Key == key {
			return m.Members
		}
	}
	return nil
}

// followMasses keeps the messages about masses true, and ends those that are over.
func (r *round) followMasses(ctx context.Context) error {
	var errs []error
	for _, i := range r.incidents {
		if i.Key.Class != escalate.Mass || i.State == escalate.Resolved {
			continue
		}
		var e escalate.Event
		at := slices.IndexFunc(r.fleet.Masses, func(m remedy.Mass) bool { return m.Key == i.Key.Agent })
		switch {
		case at < 0:
			e = escalate.Gone{Why: "fewer than two of them are still in this trouble; whoever is, is told of alone"}
		case !r.fleet.Masses[at].Released.IsZero():
			e = escalate.Recovered{How: "one of them works again, the others follow"}
		case !slices.Equal(r.fleet.Masses[at].Members, i.Facts.Members):
			f := i.Facts
			f.Members = r.fleet.Masses[at].Members
			e = escalate.Changed{Facts: f}
		default:
			continue
		}
		errs = append(errs, r.tell(ctx, r.agentOf(i), i, e, nil))
	}
	return errors.Join(errs...)
}

// held reports whether an agent is one of many that fail together and wait.
func held(f remedy.Fleet, agent string) bool {
	return slices.ContainsFunc(f.Masses, func(m remedy.Mass) bool { return m.Released.IsZero() && slices.Contains(m.Members, agent) })
}
