package monitor

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/diagnose"
	"github.com/outlive-mcp/outlive/internal/escalate"
	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/remedy"
	"github.com/outlive-mcp/outlive/internal/roster"
)

// incidentsKept is how long an incident is kept at hand after its end: trouble that comes back is the same one.
const incidentsKept = 30 * time.Minute

// incidents are those that are not over, or were not until only just, the oldest first.
func (s *store) incidents(ctx context.Context, now time.Time) ([]escalate.Incident, error) {
	return s.incidentsSince(ctx, now.Add(-incidentsKept))
}

// incidentsSince are those that were not over at a time.
func (s *store) incidentsSince(ctx context.Context, since time.Time) ([]escalate.Incident, error) {
	return query(ctx, s.db, `SELECT data FROM trouble WHERE resolved = 0 OR resolved > ? ORDER BY opened, id`, scanRow, since.UnixMilli())
}

func scanRow(r *sql.Rows) (escalate.Incident, error) { return scanIncident(r) }

func scanIncident(r interface{ Scan(...any) error }) (i escalate.Incident, err error) {
	var data string
	if err := r.Scan(&data); err != nil {
		return i, err
	}
	return i, json.Unmarshal([]byte(data), &i)
}

// opened are an agent's incidents that are not over.
func opened(list []escalate.Incident, key string) []escalate.Incident {
	return slices.DeleteFunc(slices.Clone(list), func(i escalate.Incident) bool {
		return i.Key.Agent != key || i.State == escalate.Resolved
	})
}

func (r *round) open(key string) []escalate.Incident { return opened(r.incidents, key) }

// incidentKey says which trouble of an agent is one incident. S4 knows its own types only.
func (c *examined) incidentKey() escalate.Key {
	k := escalate.Key{Agent: c.Key, Class: c.problem.Class, Phase: piv.PhaseName(c.problem.Phase)}
	if c.Declared == nil {
		k.Class = c.problem.Stall
	} else if c.problem.Phase == piv.NoPhase {
		k.Phase = ""
	}
	return k
}

// facts is what there is to tell of an agent's trouble. Secrets are taken out here, before anything is kept.
func (r *round) facts(c *examined, d remedy.Decision) escalate.Facts {
	redact := r.opts.redact
	f := escalate.Facts{
		Name: c.Name, Phase: c.incidentKey().Phase, Stall: c.problem.Stall, Severity: escalate.SeverityOf(c.problem.Class),
		Since: c.problem.Since, Details: c.verdict.Details, Action: redact(r.taken(c, d)),
		Used: d.Budget.Used, Max: d.Budget.Max, Body: redact(c.body.body), Request: c.body.request, Input: c.body.input, Unasked: c.body.unasked,
	}
	can := r.capabilities(c)
	f.Restart, f.Resume, f.Stop, f.Unheard = can.Restart, can.Resume, len(c.body.target.Leaders) > 0, r.unheard(r.now.Wall)
	if r.opts.OpenGroup {
		f.Restart, f.Resume, f.Stop, f.Request, f.Input = false, false, false, "", ""
	}
	if f.Request != "" && f.Severity == escalate.Warning {
		f.Severity = escalate.Critical // an agent waits, and there is somebody who can answer: that is why it asks
	}
	return f
}

// taken says what was done before a human is told.
func (r *round) taken(c *examined, d remedy.Decision) string {
	if c.Declared == nil && d.Rung == remedy.Escalate {
		return "none: a human is needed"
	}
	if d.Rung == remedy.AskPhone {
		if c.verdict.Class == diagnose.WaitingQuestion && len(r.nudgeOf(c)) == 0 {
			return fmt.Sprintf("it waits %d minutes for an answer at its own terminal", d.VerifyWithin/time.Minute)
		}
		return "" // its title says what it waits for
	}
	var done []string
	for _, rec := range r.recoveries[c.Key] {
		if rec.Act.Class == c.problem.Class && !rec.Act.Refunded && !rec.Act.At.Before(c.problem.Since) {
			done = append(done, escalate.DoneWords(string(rec.Act.Rung)))
		}
	}
	switch {
	case len(done) == 0 && (d.Reason == "" || d.Reason == remedy.ReasonHuman): // its title says so
		return ""
	case len(done) == 0:
		return d.Reason
	case d.Reason == "":
		return strings.Join(done, ", ")
	}
	return strings.Join(done, ", ") + "; " + d.Reason
}

// policyOf is whom one tells of an agent, and when again.
func (r *round) policyOf(a agent) escalate.Policy {
	if a.Declared == nil {
		return escalate.Policy{S4: true, Tiers: r.opts.tiers(), Repeat: -1, Max: -1}
	}
	return policyOf(*a.Declared, r.page.Roster, r.opts)
}

func policyOf(d roster.Agent, all *roster.Roster, o Options) escalate.Policy {
	e := d.Escalate
	p := escalate.Policy{AckTimeout: e.AckTimeout, Repeat: e.Repeat, Max: e.Max, Location: all.Zone}
	switch {
	case len(e.To) > 0:
		p.Tiers = [][]string{e.To}
	default:
		p.Tiers = o.tiers()
	}
	if len(e.Next) > 0 {
		p.Tiers = append(p.Tiers, e.Next)
	}
	for _, text := range e.Quiet {
		if q, err := escalate.ParseQuiet(text); err == nil { // the registry was checked when it was read
			p.Quiet = append(p.Quiet, q)
		}
	}
	return p
}

// escalate tells a human, once, and goes on telling as the owner wants.
func (r *round) escalate(ctx context.Context, c *examined, d remedy.Decision) error {
	if d.Mass != "" {
		return r.escalateMass(ctx, c, d)
	}
	return r.raise(ctx, c.agent, c.incidentKey(), r.facts(c, d), c.entryOf(r, d), nil)
}

// entryOf is the improvement log's entry of a human being told.
func (c *examined) entryOf(r *round, d remedy.Decision) piv.Intervention {
	e := piv.Intervention{
		Time: r.now.Wall, Project: c.Name, Phase: c.problem.Phase, Stall: cmp.Or(c.problem.Stall, c.problem.Class), Action: "escalate",
		Details: fmt.Sprintf("[%s %s] %s", c.verdict.Rule, c.verdict.Class, c.verdict.Details),
	}
	if d.Rung == remedy.AskPhone {
		e.Action = "ask a human"
	}
	if out := leftOut(d); out != "" && c.Declared != nil {
		e.Details += " (" + out + ")"
	}
	return e
}

// asksAnew reports whether an agent asks what it did not ask before it went on: its person has answered, and does not know of this.
func asksAnew(old escalate.Incident, f escalate.Facts) bool {
	over := old.State == escalate.Resolved && slices.Contains(waits, diagnose.Class(old.Key.Class))
	return over && f.Since.After(old.Resolved.Add(-lookEvery))
}

// raise opens an incident or goes on with it, queues its message and its entry of the improvement log, and does also, all
// in one transaction: whatever kills us, either all of it has happened or nothing.
func (r *round) raise(ctx context.Context, a agent, key escalate.Key, f escalate.Facts, entry piv.Intervention, also func(*sql.Tx) error) error {
	p := r.policyOf(a)
	if p.S4 && f.Max == 0 {
		f.Max = r.opts.Restarts // S4's message names it for every type
	}
	i, known := escalate.New(newIncidentID(), key), false
	for _, old := range r.incidents {
		if old.Continues(key, p, r.now.Wall) && !asksAnew(old, f) {
			i, known = old, true
		}
	}
	fresh := !known || i.State == escalate.Resolved
	if !fresh && also == nil && !worthTelling(i.Facts, f) {
		return nil
	}
	nonce := ""
	if fresh || f.Request != i.Facts.Request { // what is pressed must belong to what is shown
		nonce = newNonce()
	}
	r.opts.checkpoint("escalate-before")
	err := r.tell(ctx, a, i, escalate.Opened{Facts: f, Nonce: nonce}, func(tx *sql.Tx) error {
		entry.Outcome = "a human was told before"
		if fresh {
			entry.Outcome = r.opts.outcome(p)
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
		r.summary.Escalated++
		r.opts.checkpoint("escalated")
	}
	return err
}

// outcome says in the improvement log what became of telling a human.
func (o Options) outcome(p escalate.Policy) string {
	if len(p.Tiers) == 0 {
		return "logged only: Telegram is not configured"
	}
	if p.S4 {
		return "Telegram message queued"
	}
	return "message queued for " + strings.Join(p.Tiers[0], ", ")
}

func newIncidentID() string { return newRun()[:8] }

// news keeps the message of an open incident true.
func (r *round) news(ctx context.Context, c *examined) error {
	key := c.incidentKey()
	for _, i := range r.open(c.Key) {
		if i.Key.Class != key.Class || i.Key.Phase != key.Phase || c.Declared == nil {
			continue
		}
		f := r.facts(c, remedy.Decision{Budget: remedy.Usage{Used: i.Facts.Used, Max: i.Facts.Max}})
		f.Action = i.Facts.Action
		if !worthTelling(i.Facts, f) {
			continue
		}
		nonce := ""
		if f.Request != i.Facts.Request {
			nonce = newNonce()
		}
		return r.tell(ctx, c.agent, i, escalate.Changed{Facts: f, Nonce: nonce}, nil)
	}
	return nil
}

// worthTelling reports whether facts differ in more than the ages in their texts, which change with every look.
func worthTelling(was, is escalate.Facts) bool {
	was.Details, was.Body, was.Since = is.Details, is.Body, is.Since
	return !same(was, is)
}

// tell steps an incident and brings about what follows, and does also, in one transaction.
func (r *round) tell(ctx context.Context, a agent, i escalate.Incident, e escalate.Event, also func(*sql.Tx) error) error {
	var after escalate.Incident
	err := r.do(ctx, func(tx *sql.Tx) (err error) {
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		after, _, err = r.stepIncident(ctx, tx, i, e, r.policyOf(a), r.now.Wall)
		return err
	})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(r.incidents, func(o escalate.Incident) bool { return o.ID == after.ID })
	if at < 0 {
		r.incidents = append(r.incidents, after)
	} else {
		r.incidents[at] = after
	}
	return nil
}

// stepIncident is one step of one incident within tx. A press of a button may have changed it since it was read, so it is
// read again; i is what it begins as. answer is what is said to whoever has pressed.
func (m *Monitor) stepIncident(ctx context.Context, tx *sql.Tx, i escalate.Incident, e escalate.Event, p escalate.Policy, now time.Time) (after escalate.Incident, answer string, err error) {
	switch kept, err := loadIncident(ctx, tx, i.ID); {
	case err != nil:
		return i, "", fmt.Errorf("monitor.db: incident: %w", err)
	case kept.ID != "":
		i = kept
	}
	i, effects := escalate.Step(i, e, p, now.Round(0))
	var errs []error
	for _, effect := range effects {
		switch effect := effect.(type) {
		case escalate.Send:
			errs = append(errs, m.send(ctx, tx, i, effect))
		case escalate.Edit:
			errs = append(errs, m.edit(ctx, tx, i, effect))
		case escalate.Answer:
			answer = effect.Text
		case escalate.Do:
			w := wish{Agent: effect.Agent, Verb: string(effect.Verb), By: effect.By, Target: effect.Request}
			errs = append(errs, putWish(ctx, tx, w, now))
		}
	}
	errs = append(errs, saveIncident(ctx, tx, i, i.Next(p, now.Round(0))))
	return i, answer, errors.Join(errs...)
}

func saveIncident(ctx context.Context, tx *sql.Tx, i escalate.Incident, due time.Time) error {
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO trouble (id, agent, opened, resolved, due, data) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET resolved = excluded.resolved, due = excluded.due, data = excluded.data`,
		i.ID, i.Key.Agent, milli(i.Opened), milli(i.Resolved), milli(due), string(data))
	if err != nil {
		return fmt.Errorf("monitor.db: %w", err)
	}
	return nil
}

// milli is 0 for the zero time.
func milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// timers steps the incidents whose time has come.
func (r *round) timers(ctx context.Context) error {
	due, err := query(ctx, r.store.db, `SELECT data FROM trouble WHERE due > 0 AND due <= ?`, scanRow, r.now.Wall.UnixMilli())
	errs := []error{err}
	for _, i := range due {
		errs = append(errs, r.tell(ctx, r.agentOf(i), i, escalate.Timer{}, nil))
	}
	return errors.Join(errs...)
}

// agentOf is the agent of an incident, as far as it is still there.
func (r *round) agentOf(i escalate.Incident) agent {
	for _, a := range r.page.Agents {
		if a.Key == i.Key.Agent {
			return a
		}
	}
	a := agent{Key: i.Key.Agent, Name: i.Facts.Name}
	if r.page.declared() {
		d := anyone(&r.page)
		a.Declared = &d
	}
	return a
}

// anyone stands for what is nobody's: a mass, or the registry. Whoever is told of the first agent is told of it.
func anyone(p *page) roster.Agent {
	if len(p.Roster.Agents) == 0 {
		return roster.Agent{}
	}
	return roster.Agent{Escalate: p.Roster.Agents[0].Escalate}
}
