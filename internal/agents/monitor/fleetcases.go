package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/fleetcases"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
)

// reach is whom this monitor can tell, for other processes.
type reach struct {
	Channels int `json:"channels"` // that an incident of no agent in particular goes to first
}

// fleetReporter tells people of what concerns several machines, and the fleet of what machines may share. It lives for one look.
type fleetReporter struct {
	m         *Monitor
	incidents *incidents
	now       time.Time
	memory    *fleetMemory
}

// fleetMemory is what outlasts a look of that. Only the loop changes it.
type fleetMemory struct {
	unshared bool     // the fleet knows that this machine shares no trouble
	shared   []string // the causes that were left to the fleet by its latest answer
	sharedAt time.Time
	reached  *reach // as it was written down last; nil: not yet
}

// tellOfFleet opens and closes the incidents of the fleet that this machine tells of.
func (rep *fleetReporter) tellOfFleet(ctx context.Context) error {
	if rep.m.opts.FleetCases == "" {
		return nil
	}
	cases, err := fleetcases.Read(rep.m.opts.FleetCases)
	if err != nil {
		return err
	}
	errs := []error{rep.noteReach(ctx)}
	for _, c := range cases {
		if c.Over == "" {
			errs = append(errs, rep.raiseCase(ctx, c))
		}
	}
	for _, i := range rep.incidents.list {
		if i.Facts.Case == "" || i.State == incident.Resolved {
			continue
		}
		at := slices.IndexFunc(cases, func(c fleetcases.Case) bool { return c.ID == i.Facts.Case })
		switch {
		case at < 0:
			errs = append(errs, rep.closeCase(ctx, i, fleetcases.Case{Over: "this machine has left the fleet"}))
		case cases[at].Over != "":
			errs = append(errs, rep.closeCase(ctx, i, cases[at]))
		}
	}
	return errors.Join(errs...)
}

func (rep *fleetReporter) raiseCase(ctx context.Context, c fleetcases.Case) error {
	key := incident.Key{Agent: c.Agent, Class: c.Class}
	f := incident.Facts{
		Name: c.Name, Stall: c.Class, Severity: incident.SeverityOf(c.Class), Since: c.Since, Details: rep.m.opts.redact(c.Details),
		Members: c.Members, ToDo: incident.ToDo(c.Class, "", incident.Ways{}), Case: c.ID, Unheard: rep.m.unheard(rep.now),
	}
	return rep.incidents.raiseOther(ctx, key, f, c.Name, c.Class, "")
}

// closeCase closes an incident of the fleet. What another machine tells of, and was not sent yet, is not sent.
func (rep *fleetReporter) closeCase(ctx context.Context, i incident.Incident, c fleetcases.Case) error {
	var e incident.Event = incident.Gone{Why: cmp.Or(c.Over, "it is over")}
	if c.Recovered {
		e = incident.Recovered{How: c.Over}
	}
	if !c.Withdrawn || i.State != incident.Open {
		return rep.incidents.tell(ctx, rep.incidents.agentOf(i), i, e, nil)
	}
	return rep.m.store.do(ctx, func(tx *sql.Tx) error {
		_, _, err := rep.m.stepIncident(ctx, tx, i, e, rep.incidents.policyOf(rep.incidents.agentOf(i)), rep.now)
		return errors.Join(err, rep.m.notifiers.outbox.Withdraw(ctx, tx, i.ID))
	})
}

// noteReach writes down whom this monitor can tell, when that changes.
func (rep *fleetReporter) noteReach(ctx context.Context) error {
	now := reach{}
	if p := rep.incidents.policyOf(rep.incidents.agentOf(incident.Incident{})); len(p.Tiers) > 0 {
		now.Channels = len(p.Tiers[0])
	}
	if rep.memory.reached != nil && *rep.memory.reached == now {
		return nil
	}
	err := setFact(ctx, rep.m.store.db, "reach", now)
	if err == nil {
		rep.memory.reached = &now
	}
	return err
}

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
