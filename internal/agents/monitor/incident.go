package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// incidentsKept is how long a closed incident is kept: trouble that returns within this time reopens it.
const incidentsKept = 30 * time.Minute

// incidentsSince are those that were not over at a time, the oldest first.
func (s *store) incidentsSince(ctx context.Context, since time.Time) ([]incident.Incident, error) {
	return query(ctx, s.db, `SELECT data FROM trouble WHERE resolved = 0 OR resolved > ? ORDER BY opened, id`, scanIncident, since.UnixMilli())
}

func scanIncident(r *sql.Rows) (i incident.Incident, err error) {
	err = r.Scan(asJSON{&i})
	return i, err
}

// incidentKey identifies the incident of an agent's trouble. PIV has only its own types.
func (c *examined) incidentKey() incident.Key {
	return incidentKey(!c.isProject(), c.Key, c.problem.Class, c.problem.Stall, c.problem.Phase)
}

func incidentKey(declared bool, agent, class, stall string, phase int) incident.Key {
	k := incident.Key{Agent: agent, Class: class, Phase: piv.PhaseName(phase)}
	if !declared {
		k.Class = stall
	} else if phase == piv.NoPhase {
		k.Phase = ""
	}
	return k
}

// facts describes the agent's trouble. Secrets are removed here, before anything is stored.
func (r *round) facts(c *examined, d recovery.Decision) incident.Facts {
	redact := r.opts.redact
	f := incident.Facts{
		Name: c.Name, Phase: c.incidentKey().Phase, Stall: c.problem.Stall, Severity: incident.SeverityOf(c.problem.Class),
		Since: c.problem.Since, Details: c.diagnosis.Details, Action: redact(r.taken(c, d)),
		Used: d.Budget.Used, Max: d.Budget.Max, Window: d.Budget.Window, PerPhase: d.Budget.PerPhase,
		Body: redact(c.subject.text), Asked: redact(c.evidence.Asked()), Request: c.subject.request, Input: c.subject.input, Unasked: c.subject.unasked,
	}
	f.Ways = r.incidents.ways(c)
	can := r.capabilities(c)
	f.Restart, f.Resume, f.Unheard = can.Restart, can.Resume, r.unheard(r.now.Wall)
	f.NoReplies = f.NoReplies || f.Unheard
	f.Stop = len(c.subject.target.Leaders) > 0 && c.evidence.Process.Life != diagnose.Dead
	if r.opts.OpenGroup {
		f.Restart, f.Resume, f.Stop, f.Request, f.Input = false, false, false, "", ""
	}
	if f.Request != "" && f.Severity == incident.Warning {
		f.Severity = incident.Critical // an agent waits, and somebody can answer
	}
	return f
}

// ownBot is the address of the channel on which replies are heard, and its name where no registry names it.
const ownBot = "telegram"

// ways are those in which a person reaches an agent.
func (in *incidents) ways(c *examined) incident.Ways {
	w := incident.Ways{Joinable: c.subject.joinable, NoTerminal: c.subject.piped}
	if c.isProject() {
		return w
	}
	names := slices.Concat(in.policyOf(c.agent).Tiers...)
	heard := slices.ContainsFunc(names, func(name string) bool {
		if named, ok := in.snapshot.Registry.Channel(name); ok {
			name = named.Address
		}
		return name == ownBot
	})
	w.NoNudge = len(c.Declared.Start.Nudge) == 0
	w.NoReplies = in.m.opts.OpenGroup || len(names) > 0 && !heard
	return w
}

// taken says what was done before a human is notified.
func (r *round) taken(c *examined, d recovery.Decision) string {
	if c.isProject() && d.Rung == recovery.Escalate {
		return "none: a human is needed"
	}
	if d.Rung == recovery.AskPhone {
		if c.diagnosis.Class == diagnose.WaitingQuestion && len(c.Declared.Start.Nudge) == 0 && !c.subject.piped {
			return fmt.Sprintf("it waits %d minutes for an answer at its own terminal", d.VerifyWithin/time.Minute)
		}
		return "" // its title says what it waits for
	}
	var done []string
	for _, rec := range r.ledger.all[c.Key] {
		if rec.Act.Class == c.problem.Class && !rec.Act.Refunded && !rec.Act.At.Before(c.problem.Since) {
			done = append(done, incident.DoneWords(string(rec.Act.Rung)))
		}
	}
	switch {
	case len(done) == 0 && (d.Reason == "" || d.Reason == recovery.ReasonHuman): // its title says so
		return ""
	case len(done) == 0:
		return d.Reason
	case d.Reason == "":
		return strings.Join(done, ", ")
	}
	return strings.Join(done, ", ") + "; " + d.Reason
}

func policyOf(d registry.Agent, all *registry.Registry, o Options) incident.Policy {
	e := d.Escalate
	p := incident.Policy{AckTimeout: e.AckTimeout, Repeat: e.Repeat, Max: e.Max, Location: all.Zone, Home: o.HomeFlag, Version: o.Version}
	if len(e.To) == 0 {
		e.To = everyChannel(e.Next, all, o)
	}
	if len(e.To) > 0 {
		p.Tiers = [][]string{e.To}
	}
	if len(e.Next) > 0 {
		p.Tiers = append(p.Tiers, e.Next)
	}
	for _, text := range e.Quiet {
		if q, err := incident.ParseQuiet(text); err == nil { // hours without a length are none
			p.Quiet = append(p.Quiet, q)
		}
	}
	return p
}

// everyChannel are those of the registry that are not told next, and those of the options that none of these is.
func everyChannel(next []string, all *registry.Registry, o Options) []string {
	names := slices.Collect(maps.Keys(o.Channels))
	for _, c := range all.Channels {
		if !slices.Contains(next, c.Name) {
			names = append(slices.DeleteFunc(names, func(own string) bool { return own == c.Address || own == c.Name }), c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// escalate notifies a human once, and again as the policy says.
func (r *round) escalate(ctx context.Context, c *examined, d recovery.Decision) error {
	switch {
	case d.Mass != "":
		return r.escalateMass(ctx, c, d)
	case c.diagnosis.Class == diagnose.WaitingServer:
		return nil // the incident of the server, which tellOfServers opens, is the one that tells of it
	}
	f := r.facts(c, d)
	r.fleet.share(ctx, &f, recovery.SharedCause(c.problem, ""))
	return r.incidents.raise(ctx, c.agent, c.incidentKey(), f, c.entryOf(r.now.Wall, d), nil)
}

// entryOf is the improvement log's entry of an escalation.
func (c *examined) entryOf(now time.Time, d recovery.Decision) piv.Intervention {
	e := piv.Intervention{
		Time: now, Project: c.Name, Phase: c.problem.Phase, Stall: cmp.Or(c.problem.Stall, c.problem.Class), Action: "escalate",
		Details: fmt.Sprintf("[%s %s] %s", c.diagnosis.Rule, c.diagnosis.Class, c.diagnosis.Details),
	}
	if d.Rung == recovery.AskPhone {
		e.Action = "ask a human"
	}
	if len(d.Skipped) > 0 {
		e.Details += " (" + strings.Join(d.Skipped, "; ") + ")"
	}
	return e
}

// asksAnew reports a new question after the agent went on: its user has answered the old one and does not know of this.
func asksAnew(old incident.Incident, f incident.Facts) bool {
	over := old.State == incident.Resolved && slices.Contains(waits, diagnose.Class(old.Key.Class))
	return over && f.Since.After(old.Resolved.Add(-lookEvery))
}

// outcome describes the result of an escalation for the improvement log.
func (o Options) outcome(p incident.Policy) string {
	switch {
	case len(p.Tiers) == 0 && p.PIV:
		return "logged only: Telegram is not configured"
	case len(p.Tiers) == 0:
		return "logged only: there is no channel"
	case p.PIV:
		return "Telegram message queued"
	}
	return "message queued for " + strings.Join(p.Tiers[0], ", ")
}

// news updates the message of an open incident.
func (r *round) news(ctx context.Context, c *examined) error {
	key := c.incidentKey()
	for _, i := range r.incidents.open(c.Key) {
		if i.Key.Class != key.Class || i.Key.Phase != key.Phase || c.isProject() {
			continue
		}
		was := i.Facts
		f := r.facts(c, recovery.Decision{Budget: recovery.Usage{Used: was.Used, Max: was.Max, Window: was.Window, PerPhase: was.PerPhase}})
		f.Action = i.Facts.Action
		if f.Shared = was.Shared; f.Shared != "" && was.Severity == incident.Info {
			f.Severity = incident.Info // see followShared
		}
		if !worthTelling(i.Facts, f) {
			continue
		}
		nonce := ""
		if f.Request != i.Facts.Request {
			nonce = newNonce()
		}
		return r.incidents.tell(ctx, c.agent, i, incident.Changed{Facts: f, Nonce: nonce}, nil)
	}
	return nil
}

// worthTelling reports whether facts differ in more than the ages in their texts, which change with every look.
func worthTelling(was, is incident.Facts) bool {
	was.Details, was.Body, was.Since = is.Details, is.Body, is.Since
	return !reflect.DeepEqual(was, is)
}

// stepIncident applies one event to one incident within tx. The incident is read again, since a button press may have
// changed it; i is used if it is new. answer is the reply to the button press.
func (m *Monitor) stepIncident(ctx context.Context, tx *sql.Tx, i incident.Incident, e incident.Event, p incident.Policy, now time.Time) (after incident.Incident, answer string, err error) {
	switch kept, err := loadIncident(ctx, tx, i.ID); {
	case err != nil:
		return i, "", err
	case kept.ID != "":
		i = kept
	}
	i, effects := incident.Step(i, e, p, now.Round(0))
	var errs []error
	for _, effect := range effects {
		switch effect := effect.(type) {
		case incident.Send:
			errs = append(errs, m.send(ctx, tx, i, effect))
		case incident.Edit:
			errs = append(errs, m.edit(ctx, tx, effect))
		case incident.Answer:
			answer = effect.Text
		case incident.Do:
			w := UserRequest{Agent: effect.Agent, Verb: string(effect.Verb), By: effect.By, Target: effect.Request}
			_, err := addRequest(ctx, tx, w, now)
			errs = append(errs, err)
		}
	}
	errs = append(errs, saveIncident(ctx, tx, i, i.Next(p, now.Round(0))))
	return i, answer, errors.Join(errs...)
}

func saveIncident(ctx context.Context, tx *sql.Tx, i incident.Incident, due time.Time) error {
	_, err := write(ctx, tx, `INSERT INTO trouble (id, agent, opened, resolved, due, data) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET resolved = excluded.resolved, due = excluded.due, data = excluded.data`,
		i.ID, i.Key.Agent, milli(i.Opened), milli(i.Resolved), milli(due), asJSON{i})
	return err
}

// milli is 0 for the zero time.
func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// anyone stands for the agent where there is none: a mass incident, or the registry. It has the first agent's escalation.
func anyone(p *snapshot) registry.Agent {
	if len(p.Registry.Agents) == 0 {
		return registry.Agent{}
	}
	return registry.Agent{Escalate: p.Registry.Agents[0].Escalate}
}
