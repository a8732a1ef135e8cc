package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/outlive-mcp/outlive/internal/agents/fleetcases"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
)

// reach is whom this monitor can tell, for other processes.
type reach struct {
	Channels int `json:"channels"` // that an incident of no agent in particular goes to first
}

// fleetPart is what a round does for the fleet that this machine is in.
type fleetPart struct{ *round }

// tellOfFleet opens and closes the incidents of the fleet that this machine tells of.
func (r fleetPart) tellOfFleet(ctx context.Context) error {
	if r.opts.FleetCases == "" {
		return nil
	}
	cases, err := fleetcases.Read(r.opts.FleetCases)
	if err != nil {
		return err
	}
	errs := []error{r.noteReach(ctx)}
	for _, c := range cases {
		if c.Over == "" {
			errs = append(errs, r.raiseCase(ctx, c))
		}
	}
	for _, i := range r.incidents.list {
		if i.Facts.Case == "" || i.State == incident.Resolved {
			continue
		}
		at := slices.IndexFunc(cases, func(c fleetcases.Case) bool { return c.ID == i.Facts.Case })
		switch {
		case at < 0:
			errs = append(errs, r.closeCase(ctx, i, fleetcases.Case{Over: "this machine has left the fleet"}))
		case cases[at].Over != "":
			errs = append(errs, r.closeCase(ctx, i, cases[at]))
		}
	}
	return errors.Join(errs...)
}

func (r fleetPart) raiseCase(ctx context.Context, c fleetcases.Case) error {
	key := incident.Key{Agent: c.Agent, Class: c.Class}
	f := incident.Facts{
		Name: c.Name, Stall: c.Class, Severity: incident.SeverityOf(c.Class), Since: c.Since, Details: r.opts.redact(c.Details),
		Members: c.Members, ToDo: incident.ToDo(c.Class, "", incident.Ways{}), Case: c.ID, Unheard: r.unheard(r.now.Wall),
	}
	entry := piv.Intervention{
		Time: r.now.Wall, Project: c.Name, Phase: piv.NoPhase, Stall: c.Class, Action: "escalate", Details: fmt.Sprintf("[%s] %s", c.Class, f.Details),
	}
	return r.incidents.raise(ctx, r.incidents.agentOf(incident.Incident{Key: key, Facts: f}), key, f, entry, nil)
}

// closeCase closes an incident of the fleet. What another machine tells of, and was not sent yet, is not sent.
func (r fleetPart) closeCase(ctx context.Context, i incident.Incident, c fleetcases.Case) error {
	var e incident.Event = incident.Gone{Why: cmp.Or(c.Over, "it is over")}
	if c.Recovered {
		e = incident.Recovered{How: c.Over}
	}
	if !c.Withdrawn || i.State != incident.Open {
		return r.incidents.tell(ctx, r.incidents.agentOf(i), i, e, nil)
	}
	return r.do(ctx, func(tx *sql.Tx) error {
		_, _, err := r.stepIncident(ctx, tx, i, e, r.incidents.policyOf(r.incidents.agentOf(i)), r.now.Wall)
		return errors.Join(err, r.notifiers.outbox.Withdraw(ctx, tx, i.ID))
	})
}

// noteReach writes down whom this monitor can tell, when that changes.
func (r fleetPart) noteReach(ctx context.Context) error {
	now := reach{}
	if p := r.incidents.policyOf(r.incidents.agentOf(incident.Incident{})); len(p.Tiers) > 0 {
		now.Channels = len(p.Tiers[0])
	}
	if r.reached != nil && *r.reached == now {
		return nil
	}
	err := r.store.setFact(ctx, "reach", now)
	if err == nil {
		r.reached = &now
	}
	return err
}
