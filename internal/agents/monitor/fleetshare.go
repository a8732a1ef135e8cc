package monitor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
)

const (
	// shareLimit is how long an answer of this machine's member of a fleet is waited for.
	shareLimit = time.Second
	// sharedFor is how long the last answer counts when there is none: a machine so loaded that its member is late must not tell people of
	// what the fleet has told them of.
	sharedFor = 30 * time.Second
)

// share notes the cause of a new incident that agents of other machines may share, and leaves it to the fleet to tell people of it, if there
// is one: then it is only shown here.
func (rep *fleetReporter) share(ctx context.Context, f *incident.Facts, cause string) {
	f.Shared = cause
	if cause == "" || rep.m.opts.Fleet == nil {
		return
	}
	list := rep.sharedTroubles()
	for _, name := range agentsOf(*f) {
		list = append(list, SharedTrouble{Cause: cause, Agent: name})
	}
	if left, _ := rep.askFleet(ctx, list); slices.Contains(left, cause) {
		f.Severity = incident.Info
	}
}

// agentsOf are the agents of an incident, by name.
func agentsOf(f incident.Facts) []string {
	if len(f.Members) > 0 {
		return f.Members
	}
	return []string{f.Name}
}

// sharedTroubles are those of the incidents that are not over.
func (rep *fleetReporter) sharedTroubles() (list []SharedTrouble) {
	for _, i := range rep.incidents.list {
		if i.Facts.Shared == "" || i.State == incident.Resolved {
			continue
		}
		for _, name := range agentsOf(i.Facts) {
			list = append(list, SharedTrouble{Cause: i.Facts.Shared, Agent: name, Told: !i.Rang.IsZero()})
		}
	}
	return list
}

// askFleet returns the causes that are left to the fleet; false: this machine is in none, or its member does not run, so it tells by itself.
func (rep *fleetReporter) askFleet(ctx context.Context, list []SharedTrouble) (left []string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, shareLimit)
	defer cancel()
	left, err := rep.m.opts.Fleet.Share(ctx, list)
	switch {
	case err == nil:
		rep.memory.shared, rep.memory.sharedAt = left, rep.now
	case ctx.Err() != nil && !rep.memory.sharedAt.IsZero() && rep.now.Sub(rep.memory.sharedAt) < sharedFor: // it is late
		return rep.memory.shared, false
	}
	return left, err == nil
}

// followShared tells the fleet at each look what this machine shares, and people by itself of what the fleet does not tell of any more.
func (rep *fleetReporter) followShared(ctx context.Context) error {
	list := rep.sharedTroubles()
	if rep.m.opts.Fleet == nil || len(list) == 0 && rep.memory.unshared {
		return nil
	}
	left, ok := rep.askFleet(ctx, list)
	rep.memory.unshared = ok && len(list) == 0
	var errs []error
	for _, i := range rep.incidents.list {
		if i.Facts.Shared == "" || i.State == incident.Resolved || !i.Rang.IsZero() {
			continue
		}
		f := i.Facts
		f.Severity = incident.SeverityOf(i.Key.Class)
		if slices.Contains(left, f.Shared) {
			f.Severity = incident.Info
		}
		if f.Severity != i.Facts.Severity {
			errs = append(errs, rep.incidents.tell(ctx, rep.incidents.agentOf(i), i, incident.Changed{Facts: f}, nil))
		}
	}
	return errors.Join(errs...)
}
