package monitor

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// incidents owns the notifications of one look: the open incidents, and who is notified.
type incidents struct {
	m        *Monitor
	snapshot *snapshot // the round's
	now      time.Time

	list      []incident.Incident // that are not over, or were not until only just
	escalated int                 // of them: escalated at this look
}

// open are an agent's incidents that are not over.
func (in *incidents) open(key string) []incident.Incident {
	return slices.DeleteFunc(slices.Clone(in.list), func(i incident.Incident) bool {
		return i.Key.Agent != key || i.State == incident.Resolved
	})
}

// policyOf says who is notified about an agent, and when again.
func (in *incidents) policyOf(a agent) incident.Policy {
	if a.isProject() {
		p := incident.Policy{PIV: true, Repeat: -1, Max: -1, Version: in.m.opts.Version}
		if len(in.m.opts.Channels) > 0 {
			p.Tiers = [][]string{slices.Sorted(maps.Keys(in.m.opts.Channels))}
		}
		return p
	}
	return policyOf(*a.Declared, in.snapshot.Registry, in.m.opts)
}

// agentOf is the agent of an incident, if it still exists.
func (in *incidents) agentOf(i incident.Incident) agent {
	key := i.Key.Agent
	if _, user, is := i.Key.ServerAndUser(); is {
		key = user
	}
	if a, there := in.snapshot.agent(key); there {
		return a
	}
	p := piv.Project{Key: i.Key.Agent, Name: i.Facts.Name}
	if !in.snapshot.declared() {
		return in.m.opts.ofProject(p)
	}
	d := anyone(in.snapshot)
	return agent{Project: p, Declared: &d}
}

// raise opens or updates an incident, queues its message and its entry of the improvement log, and runs also, all in one
// transaction.
func (in *incidents) raise(ctx context.Context, a agent, key incident.Key, f incident.Facts, entry piv.Intervention, also func(*sql.Tx) error) error {
	p := in.policyOf(a)
	if p.PIV && f.Max == 0 {
		f.Max = in.m.opts.Restarts // PIV's message names it for every type
	}
	i, known := incident.New(rand.Text()[:8], key), false
	for _, old := range in.list {
		if old.Continues(key, in.now) && !asksAnew(old, f) {
			i, known = old, true
		}
	}
	fresh := !known || i.State == incident.Resolved
	if !fresh && also == nil && !worthTelling(i.Facts, f) {
		return nil
	}
	nonce := ""
	if fresh || f.Request != i.Facts.Request { // a pressed button must belong to the request that is shown
		nonce = newNonce()
	}
	in.m.opts.checkpoint("escalate-before")
	err := in.tell(ctx, a, i, incident.Opened{Facts: f, Nonce: nonce}, func(tx *sql.Tx) error {
		entry.Outcome = "its incident was open before"
		if fresh {
			entry.Outcome = in.m.opts.outcome(p)
		}
		errs := []error{}
		if also != nil {
			errs = append(errs, also(tx))
		}
		if fresh || also != nil {
			errs = append(errs, journal(ctx, tx, entry))
		}
		return errors.Join(errs...)
	})
	if err == nil && fresh {
		in.escalated++
		in.m.opts.checkpoint("escalated")
	}
	return err
}

// raiseOther is raise for trouble of the registry, of a server or of the fleet, which is found at no agent. rule and what
// begin its entry in the improvement log.
func (in *incidents) raiseOther(ctx context.Context, key incident.Key, f incident.Facts, project, rule, what string) error {
	return in.raise(ctx, in.agentOf(incident.Incident{Key: key, Facts: f}), key, f, piv.Intervention{
		Time: in.now, Project: project, Phase: piv.NoPhase, Stall: key.Class, Action: "escalate",
		Details: fmt.Sprintf("[%s] %s%s", rule, what, f.Details),
	}, nil)
}

// tell applies an event to an incident, queues the resulting messages and runs also, in one transaction.
func (in *incidents) tell(ctx context.Context, a agent, i incident.Incident, e incident.Event, also func(*sql.Tx) error) error {
	var after incident.Incident
	err := in.m.store.do(ctx, func(tx *sql.Tx) (err error) {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		after, _, err = in.m.stepIncident(ctx, tx, i, e, in.policyOf(a), in.now)
		return err
	})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(in.list, func(o incident.Incident) bool { return o.ID == after.ID })
	if at < 0 {
		in.list = append(in.list, after)
	} else {
		in.list[at] = after
	}
	return nil
}

// timers applies due timers.
func (in *incidents) timers(ctx context.Context) error {
	due, err := query(ctx, in.m.store.db, `SELECT data FROM trouble WHERE due > 0 AND due <= ?`, scanIncident, in.now.UnixMilli())
	errs := []error{err}
	for _, i := range due {
		errs = append(errs, in.tell(ctx, in.agentOf(i), i, incident.Timer{}, nil))
	}
	return errors.Join(errs...)
}

// deliveries tells incidents whether their messages were delivered, which decides who is notified next.
func (in *incidents) deliveries(ctx context.Context) error {
	var errs []error
	for _, i := range in.list {
		if i.State == incident.Resolved || len(i.Channels) == 0 {
			continue
		}
		events, err := in.deliveriesOf(ctx, i)
		errs = append(errs, err)
		for _, e := range events {
			errs = append(errs, in.tell(ctx, in.agentOf(i), i, e, nil))
		}
	}
	return errors.Join(errs...)
}

// deliveriesOf are the delivery results of one incident's messages.
func (in *incidents) deliveriesOf(ctx context.Context, i incident.Incident) (events []incident.Event, err error) {
	type delivery struct {
		channel, state string
		refused        bool
	}
	list, err := query(ctx, in.m.store.db, `SELECT channel, state, refused FROM outbox_message WHERE id IN
		(SELECT max(id) FROM outbox_message WHERE state <> 'merged' AND (thread = ? OR key LIKE ?) GROUP BY channel)`, func(rows *sql.Rows) (d delivery, err error) {
		return d, rows.Scan(&d.channel, &d.state, &d.refused)
	}, i.ID, "incident/"+i.ID+"/%")
	open := in.m.notifiers.outbox.Channels()
	for _, name := range i.Channels {
		if !slices.Contains(open, name) && !slices.Contains(i.Failing, name) {
			events = append(events, incident.Failed{Channel: name}) // it is not declared any more
		}
	}
	for _, d := range list {
		failing := slices.Contains(i.Failing, d.channel)
		switch {
		case d.state == "sent" && (i.State == incident.Open || failing):
			events = append(events, incident.Sent{Channel: d.channel})
		case (d.state == "dropped" || d.refused) && d.state != "sent" && !failing:
			events = append(events, incident.Failed{Channel: d.channel})
		}
	}
	return events, err
}

// followMasses updates the messages about mass failures, and closes those that are over.
func (in *incidents) followMasses(ctx context.Context, masses []recovery.Mass) error {
	var errs []error
	for _, i := range in.list {
		if i.Key.Class != incident.Mass || i.State == incident.Resolved {
			continue
		}
		var e incident.Event
		at := slices.IndexFunc(masses, func(m recovery.Mass) bool { return m.Key == i.Key.Agent })
		switch {
		case at < 0:
			e = incident.Gone{Why: "fewer than two of them are still in this trouble; each of those is reported separately"}
		case !masses[at].Released.IsZero():
			e = incident.Recovered{How: "one of them works again, the others follow"}
		case !slices.Equal(masses[at].Members, i.Facts.Members):
			f := i.Facts
			f.Members = masses[at].Members
			e = incident.Changed{Facts: f}
		default:
			continue
		}
		errs = append(errs, in.tell(ctx, in.agentOf(i), i, e, nil))
	}
	return errors.Join(errs...)
}

// tellOfRegistry reports once that the registry cannot be used.
func (in *incidents) tellOfRegistry(ctx context.Context, taken string) error {
	stall := string(diagnose.Blind)
	f := incident.Facts{
		Name: "registry", Phase: piv.PhaseName(piv.NoPhase), Stall: stall, Severity: incident.Critical,
		Details: in.m.opts.redact(in.snapshot.Lost), Action: taken,
	}
	return in.raiseOther(ctx, incident.Key{Agent: registryKey, Class: stall}, f, "registry", "R1 registry", "")
}

// closeRegistryIncident reports that the registry can be read again.
func (in *incidents) closeRegistryIncident(ctx context.Context) error {
	for _, i := range in.open(registryKey) {
		if !in.snapshot.declared() && in.now.Sub(i.Opened) < registryQuiet {
			continue
		}
		var e incident.Event = incident.Gone{Why: "it can be read again"}
		if in.snapshot.declared() {
			e = incident.Recovered{How: "it can be read again"}
		}
		if err := in.tell(ctx, in.agentOf(i), i, e, nil); err != nil {
			return err
		}
	}
	return nil
}

// acknowledge handles "outlive ack", as if a button were pressed.
func (in *incidents) acknowledge(ctx context.Context, w UserRequest) (string, error) {
	for _, i := range in.list {
		if i.ID != w.Target {
			continue
		}
		var answer string
		err := in.m.store.do(ctx, func(tx *sql.Tx) (err error) {
			_, answer, err = in.m.stepIncident(ctx, tx, i, incident.Pressed{Verb: incident.Verb(w.Verb), By: w.By}, in.policyOf(in.agentOf(i)), in.now)
			return err
		})
		return answer, err
	}
	return "no such incident", nil
}
