package monitor

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/escalate"
	"github.com/outlive-mcp/outlive/internal/hooks"
	"github.com/outlive-mcp/outlive/internal/remedy"
)

// What people can wish, besides the verbs of the buttons.
const (
	verbSay    = "say"    // give the agent a text
	verbReset  = "reset"  // give all budgets back
	verbUnack  = "unack"  // take an acknowledgement back
	verbResume = "resume" // as the button
)

func putWish(ctx context.Context, tx *sql.Tx, w wish, now time.Time) error {
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO wish (at, agent, verb, data) VALUES (?, ?, ?, ?)`, now.UnixMilli(), w.Agent, w.Verb, string(data)); err != nil {
		return fmt.Errorf("monitor.db: %w", err)
	}
	return nil
}

// grant does what people have wished for since the last look. What was begun before a kill is in the ledger; the wish is
// closed when that is written down, so it is done once.
func (r *round) grant(ctx context.Context) error {
	list, err := r.store.wishes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range list {
		answer, err := r.grantOne(ctx, w)
		if err != nil {
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
			answer = "failed: " + err.Error()
		}
		r.opts.Logger.Info("somebody has wished something", slog.String("agent", w.Agent), slog.String("verb", w.Verb), slog.String("by", w.By), slog.String("outcome", answer))
		errs = append(errs, r.do(ctx, func(tx *sql.Tx) error { return closeWish(ctx, tx, w.ID, answer, r.now.Wall) }))
	}
	return errors.Join(errs...)
}

func (r *round) grantOne(ctx context.Context, w wish) (answer string, err error) {
	switch w.Verb {
	case string(escalate.Allow), string(escalate.Deny):
		return r.decideRequest(ctx, w)
	case string(escalate.Ack), string(escalate.Snooze), verbUnack:
		return r.acknowledge(ctx, w)
	case verbReset:
		s := r.sights[w.Agent]
		s.Reset = r.now.Wall.Round(0)
		r.sights[w.Agent] = s
		return "all budgets are given back", r.store.setSight(ctx, w.Agent, s)
	}
	for _, a := range r.page.Agents {
		if a.Key == w.Agent {
			return r.grantAct(ctx, a, w)
		}
	}
	return "there is no such agent", nil
}

// grantAct is a wish that something is done to the agent now. Budgets and ladders are for machines.
func (r *round) grantAct(ctx context.Context, a agent, w wish) (string, error) {
	c := r.look1(ctx, a)
	rungs := map[string]remedy.Rung{
		string(escalate.Restart): remedy.Restart, verbResume: remedy.Resume, verbSay: remedy.Nudge, string(escalate.Stop): "stop",
	}
	rung, known := rungs[w.Verb]
	can := c.capabilities()
	switch {
	case !known:
		return "nobody knows how to " + w.Verb, nil
	case w.Verb == string(escalate.Stop):
		return r.stop(ctx, c, w)
	case !can.Can(rung):
		return fmt.Sprintf("%s cannot be done: the registry declares no command for it", rung), nil
	}
	rec := &recovery{
		Agent: c.Key, Step: begun, Entry: c.Entry, Declared: c.Declared != nil, Rule: c.verdict.Rule, Details: c.verdict.Details,
		By: w.By, Run: newRun(),
		Act: remedy.Act{
			Agent: c.Key, At: r.now.Wall.Round(0), Rung: rung, Class: string(c.verdict.Class), Stall: string(c.verdict.Stall),
			Phase: c.body.phase, Since: r.now.Wall, Sequence: c.sight.Sequence, Deadline: r.now.Wall.Add(c.recovery.Verify[rung]),
		},
	}
	c.equip(rec, r.opts)
	if w.Text != "" {
		rec.Command = fill(c.Declared.Start.Nudge, map[string]string{"text": w.Text, "session": c.body.session})
	}
	if err := r.store.addRecovery(ctx, rec); err != nil {
		return "", err
	}
	r.recoveries[c.Key] = append(r.recoveries[c.Key], *rec)
	r.opts.checkpoint("begun")
	if err := r.advance(ctx, rec); err != nil {
		return "", err
	}
	return string(rec.Step), nil
}

// stop ends the agent, and nothing is done about it until it works again.
func (r *round) stop(ctx context.Context, c *examined, w wish) (string, error) {
	if err := r.opts.processes.Stop(ctx, c.body.target); err != nil {
		return "", err
	}
	s := r.sights[c.Key]
	s.Stopped = true
	r.sights[c.Key] = s
	errs := []error{r.store.setSight(ctx, c.Key, s)}
	for _, i := range r.open(c.Key) {
		errs = append(errs, r.tell(ctx, c.agent, i, escalate.Gone{Why: "stopped by " + w.By}, nil))
	}
	return "stopped", errors.Join(errs...)
}

// decideRequest answers a request for a permission.
func (r *round) decideRequest(ctx context.Context, w wish) (string, error) {
	id, nonce := w.Target, w.Text
	requests, err := hooks.Requests(hooks.Dir(r.opts.Home))
	for _, q := range requests {
		if q.ID == id {
			nonce = q.Nonce
		}
	}
	if nonce == "" {
		return "the request is not open any more", err
	}
	err = hooks.Answer(hooks.Dir(r.opts.Home), id, nonce, hooks.Decision{Allow: w.Verb == string(escalate.Allow)}, w.By)
	var late *hooks.SettledError
	switch {
	case errors.As(err, &late):
		return late.Error(), nil
	case err != nil:
		return "", err
	}
	return w.Verb, nil
}

// acknowledge is the command line's way to press a button.
func (r *round) acknowledge(ctx context.Context, w wish) (string, error) {
	for _, i := range r.incidents {
		if i.ID != w.Target {
			continue
		}
		var answer string
		err := r.do(ctx, func(tx *sql.Tx) (err error) {
			_, answer, err = r.stepIncident(ctx, tx, i, escalate.Pressed{Verb: escalate.Verb(w.Verb), By: w.By}, r.policyOf(r.agentOf(i)), r.now.Wall)
			return err
		})
		return answer, err
	}
	return "there is no such incident", nil
}

// newRun is a token that nobody else has.
func newRun() string { return rand.Text() }

// look1 looks at one agent by itself.
func (r *round) look1(ctx context.Context, a agent) *examined {
	c := &examined{agent: a, known: r.known(a)}
	r.gather(c)
	c.problem = r.problem(c)
	return c
}
