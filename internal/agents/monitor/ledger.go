package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// step is how far a recovery has come. Each is written down before the next is done.
type step string

// The steps, in order, and the ends. What starts nothing goes from begun to doing to completed.
const (
	begun     step = "begun"     // what is to be done is known
	doing     step = "doing"     // a word or a signal is on its way
	stopping  step = "stopping"  // signals are on their way
	stopped   step = "stopped"   // it is dead: proven
	starting  step = "starting"  // a process with the token may be there
	started   step = "started"   // and is known; the registry is told
	completed step = "completed" // everything is done; new evidence has to show that it helped
	recovered step = "recovered" // it has
	abandoned step = "abandoned" // the agent came back by itself before anything was done: not counted
	failed    step = "failed"    // a human has been told why
)

// attempt is one thing that is done about an agent, or what there is of it.
type attempt struct {
	ID    int64  `json:"-"`
	Agent string `json:"-"`
	Step  step   `json:"-"`

	Act         recovery.Act      `json:"act"`
	Preamble    recovery.Preamble `json:"preamble,omitempty"`
	Entry       piv.Project       `json:"entry"` // the registry's then
	Declared    bool              `json:"declared,omitempty"`
	Rule        string            `json:"rule"`
	Details     string            `json:"details"`
	LeftOut     string            `json:"left_out,omitempty"` // the steps before this one that could not be done, for people
	UserRequest int64             `json:"wish,omitempty"`     // a person's; 0: it is done by itself
	Verb        string            `json:"verb,omitempty"`     // what that person has called it
	By          string            `json:"by,omitempty"`       // who that is
	Text        string            `json:"text,omitempty"`     // what that person says to the agent
	Used        int               `json:"used"`               // starts before this one, of Max
	Max         int               `json:"max"`

	Target    process.Target   `json:"target"`
	Server    string           `json:"server,omitempty"`  // the key of the MCP server that is restarted
	Command   []string         `json:"command,omitempty"` // that starts, nudges
	Environ   []string         `json:"environ,omitempty"` // more than what every agent gets
	Run       string           `json:"run"`
	StartedAt time.Time        `json:"started_at,omitzero"`
	Process   process.Identity `json:"process,omitzero"`
	Outcome   string           `json:"outcome,omitempty"` // for people
}

// unfinished reports a step that a killed monitor has left, and that has to be brought to an end.
func (r *attempt) unfinished() bool {
	return slices.Contains([]step{begun, doing, stopping, stopped, starting, started}, r.Step)
}

// addRecovery writes down a new recovery.
func addRecovery(ctx context.Context, tx *sql.Tx, r *attempt) (err error) {
	r.ID, err = write(ctx, tx, `INSERT INTO recovery (project, stall, phase, at, step, data) VALUES (?, ?, ?, ?, ?, ?)`,
		r.Agent, r.Act.Stall, r.Act.Phase, r.Act.At.UnixMilli(), r.Step, asJSON{r})
	return err
}

// setRecovery writes down the step that r has come to, with whatever belongs to it.
func setRecovery(ctx context.Context, tx *sql.Tx, r *attempt, to step) error {
	r.Act.Refunded = r.Act.Refunded || to == abandoned
	if _, err := write(ctx, tx, `UPDATE recovery SET step = ?, data = ? WHERE id = ?`, to, asJSON{r}, r.ID); err != nil {
		return err
	}
	r.Step = to
	return nil
}

// recoveries are those that are kept, the oldest first, by agent.
func (s *store) recoveries(ctx context.Context) (map[string][]attempt, error) {
	list, err := query(ctx, s.db, `SELECT id, project, step, data FROM recovery ORDER BY id`, func(r *sql.Rows) (v attempt, err error) {
		err = r.Scan(&v.ID, &v.Agent, &v.Step, asJSON{&v})
		return v, err
	})
	m := map[string][]attempt{}
	for _, r := range list {
		m[r.Agent] = append(m[r.Agent], r)
	}
	return m, err
}

// acts are what was done about an agent, as input for decisions.
func acts(list []attempt) []recovery.Act {
	var all []recovery.Act
	for _, r := range list {
		all = append(all, r.Act)
	}
	return all
}

// userRequests are those that nobody has seen to, the oldest first.
func (s *store) userRequests(ctx context.Context) ([]UserRequest, error) {
	return query(ctx, s.db, `SELECT id, agent, verb, data FROM wish WHERE done = 0 ORDER BY id`, func(r *sql.Rows) (v UserRequest, err error) {
		err = r.Scan(&v.ID, &v.Agent, &v.Verb, asJSON{&v})
		return v, err
	})
}

// closeRequest stores the answer to a request.
func closeRequest(ctx context.Context, tx *sql.Tx, id int64, answer string, now time.Time) error {
	_, err := write(ctx, tx, `UPDATE wish SET done = ?, answer = ? WHERE id = ?`, now.UnixMilli(), answer, id)
	return err
}

// answered returns the answer to a request; done is false while it is not handled.
func (s *store) answered(ctx context.Context, id int64) (answer string, done bool, err error) {
	var at int64
	err = s.db.QueryRowContext(ctx, `SELECT done, answer FROM wish WHERE id = ?`, id).Scan(&at, &answer)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return answer, at > 0, err
}

// ledger owns what was done about the agents, and what they share: each step is written down before it counts.
type ledger struct {
	store *store
	opts  *Options
	now   time.Time

	all   map[string][]attempt // the monitor's, by agent
	fleet recovery.Fleet
	acted bool // something was done at this look, so that what was read before may be out of date
}

// writeDown keeps what is to be done, with what all agents share of it.
func (l *ledger) writeDown(ctx context.Context, rec *attempt) error {
	err := l.store.do(ctx, func(tx *sql.Tx) error {
		return errors.Join(addRecovery(ctx, tx, rec), setFact(ctx, tx, "fleet", l.fleet))
	})
	if err != nil {
		return err
	}
	l.all[rec.Agent] = append(l.all[rec.Agent], *rec)
	l.opts.checkpoint("begun")
	return nil
}

// step writes down a step with its entries of the improvement log, in one transaction.
func (l *ledger) step(ctx context.Context, rec *attempt, to step, entries ...piv.Intervention) error {
	fleet := l.fleet
	if to == abandoned {
		fleet = fleet.Refund(rec.Act)
	}
	err := l.store.do(ctx, func(tx *sql.Tx) error {
		errs := []error{setRecovery(ctx, tx, rec, to)}
		for _, e := range entries {
			errs = append(errs, journal(ctx, tx, e))
		}
		if to == abandoned {
			errs = append(errs, setFact(ctx, tx, "fleet", fleet))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	l.fleet, l.acted = fleet, true
	list := l.all[rec.Agent]
	if i := slices.IndexFunc(list, func(o attempt) bool { return o.ID == rec.ID }); i >= 0 {
		list[i] = *rec
	}
	l.opts.checkpoint(string(to))
	return nil
}

// replacedSince reports whether the agent was started by us since then.
func (l *ledger) replacedSince(key string, t time.Time) bool {
	return slices.ContainsFunc(l.all[key], func(rec attempt) bool {
		return rec.Act.Rung.Starts() && (rec.Step == completed || rec.Step == recovered) && rec.StartedAt.After(t)
	})
}

// unproved reports a start that no new evidence has followed.
func (l *ledger) unproved(key string) bool {
	return slices.ContainsFunc(l.all[key], func(rec attempt) bool {
		return rec.Step == completed && rec.Act.Rung.Starts() && rec.Act.Proved.IsZero() && !rec.Act.Refunded
	})
}

// prove marks what was done before the agent showed new evidence: that, and nothing else, is a recovery.
func (l *ledger) prove(ctx context.Context, c *examined) error {
	list := l.all[c.Key]
	proved, news := recovery.Prove(acts(list), c.agentState.Sequence, l.now)
	if !news {
		return nil
	}
	return l.store.do(ctx, func(tx *sql.Tx) error {
		var errs []error
		for i := range list {
			if list[i].Act == proved[i] {
				continue
			}
			to := list[i].Step
			if list[i].Act = proved[i]; to == completed {
				to = recovered
			}
			errs = append(errs, setRecovery(ctx, tx, &list[i], to))
			l.opts.Logger.Info("the agent works again", slog.String("agent", c.Name), slog.String("after", string(list[i].Act.Rung)))
		}
		return errors.Join(errs...)
	})
}

// how says what has helped, for people.
func (l *ledger) how(key string) string {
	starts := 0
	for _, rec := range l.all[key] {
		if rec.Act.Rung.Starts() && !rec.Act.Refunded && !rec.Act.Proved.IsZero() && rec.Act.Proved.Equal(l.now) {
			starts++
		}
	}
	switch starts {
	case 0:
		return ""
	case 1:
		return "after 1 restart"
	}
	return fmt.Sprintf("after %d restarts", starts)
}

// tallies are what was done about each agent since then.
func (l *ledger) tallies(agents []agent, since time.Time, incidents []incident.Incident) []incident.Tally {
	var list []incident.Tally
	for _, a := range agents {
		t := incident.Tally{Name: a.Name}
		for _, act := range acts(l.all[a.Key]) {
			if act.At.Before(since) || act.Refunded || !act.Rung.Acts() {
				continue
			}
			t.Acts++
			if act.Rung.Starts() {
				t.Starts++
			}
			if !act.Proved.IsZero() {
				t.Recoveries++
			}
		}
		for _, i := range incidents {
			if i.Key.Agent == a.Key && i.Opened.After(since) {
				t.Told++
			}
		}
		list = append(list, t)
	}
	return list
}

// saveFleet keeps what all agents share, unless it is what it was before.
func (l *ledger) saveFleet(ctx context.Context, before recovery.Fleet) error {
	if reflect.DeepEqual(before, l.fleet) {
		return nil
	}
	return setFact(ctx, l.store.db, "fleet", l.fleet)
}
