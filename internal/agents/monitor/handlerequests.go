package monitor

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// User requests besides the verbs of the buttons.
const (
	verbStart = "start" // start an agent that does not run
	verbSay   = "say"   // give the agent a text
	verbReset = "reset" // give all budgets back
)

// handleRequests handles the user requests since the last look. A request is closed in the transaction that records its action,
// so it is done once, even after a kill.
func (r *round) handleRequests(ctx context.Context) error {
	list, err := r.store.userRequests(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, w := range list {
		if w.Verb == verbStatus { // once all of them were looked at
			continue
		}
		answer, err := r.grantOne(ctx, w)
		if err != nil {
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
			answer = "failed: " + err.Error()
		}
		r.opts.checkpoint("granted")
		r.opts.Logger.Info("user request handled", slog.String("agent", w.Agent), slog.String("verb", w.Verb), slog.String("by", w.By), slog.String("outcome", answer))
		errs = append(errs, r.store.do(ctx, func(tx *sql.Tx) error {
			return errors.Join(r.undelivered(ctx, tx, w, answer), closeRequest(ctx, tx, w.ID, answer, r.now.Wall))
		}))
	}
	return errors.Join(errs...)
}

// undelivered answers a reply whose text did not reach the agent; a text sent by the agent's name is answered either
// way.
func (r *round) undelivered(ctx context.Context, tx *sql.Tx, w UserRequest, answer string) error {
	if w.Verb == verbSay && w.Channel != "" {
		text := incident.Handed(w.Agent, r.opts.redact(answer), answer == said)
		return r.reply(ctx, tx, fmt.Sprintf("wish/%d", w.ID), w.Channel, w.Topic, text)
	}
	if w.Verb != verbSay || w.Target == "" || answer == said {
		return nil
	}
	i, err := loadIncident(ctx, tx, w.Target)
	if err != nil || i.ID == "" {
		return err
	}
	message := incident.Unanswered(i.Facts.Name, r.opts.redact(answer))
	message.Key = fmt.Sprintf("wish/%d", w.ID)
	return r.put(ctx, tx, i.Channels, message)
}

// said is the outcome of a delivered text.
const said = "the agent was given the text"

func (r *round) grantOne(ctx context.Context, w UserRequest) (answer string, err error) {
	switch w.Verb {
	case string(incident.Allow), string(incident.Deny):
		return r.decideRequest(ctx, w)
	case string(incident.Ack), string(incident.Snooze):
		return r.incidents.acknowledge(ctx, w)
	case verbReset:
		s := r.agentStates.all[w.Agent]
		s.Reset = r.now.Wall.Round(0)
		return "all budgets are given back", r.agentStates.set(ctx, w.Agent, s)
	}
	for _, rec := range r.ledger.all[w.Agent] {
		if rec.UserRequest == w.ID { // after a kill, reconcile has completed it
			return rec.answer(), nil
		}
	}
	if a, there := r.snapshot.agent(w.Agent); there {
		return r.requestAction(ctx, a, w)
	}
	return "no such agent", nil
}

// requestAction performs a requested action at once: budgets and recovery steps are for automatic actions.
func (r *round) requestAction(ctx context.Context, a agent, w UserRequest) (string, error) {
	if a.isProject() {
		a.Status = piv.Running // whatever the registry calls it: what there is of it has to be found
	}
	c := r.lookAt(a)
	rungs := map[string]recovery.Rung{
		verbStart: recovery.Restart, string(incident.Restart): recovery.Restart, string(incident.Resume): recovery.Resume,
		verbSay: recovery.Nudge, string(incident.Stop): "stop",
	}
	rung, known := rungs[w.Verb]
	can := r.capabilities(c)
	switch {
	case !known:
		return "no way is known to " + w.Verb, nil
	case w.Verb == string(incident.Stop):
		return r.stop(ctx, c, w)
	case !can.Can(rung) && c.subject.stranger != "":
		return fmt.Sprintf("nothing is done: %s; if it is the agent, end it yourself", c.evidence.Process.Detail), nil
	case !can.Can(rung):
		return fmt.Sprintf("%s cannot be done: %s", rung, can.Lacks(rung)), nil
	case w.Verb == verbStart && c.evidence.Process.Life == diagnose.Alive:
		return fmt.Sprintf("nothing is done: it runs already, PID %d; end it and start it anew (outlive agent restart %s)", c.subject.runs(), a.Key+r.opts.HomeFlag), nil
	case w.Verb == verbStart && c.evidence.Process.Life == diagnose.Unsure:
		return "nothing is done: it may run already: " + c.evidence.Process.Detail, nil
	}
	rec := &attempt{
		Agent: c.Key, Step: begun, Entry: c.Project, Declared: !c.isProject(), Rule: c.diagnosis.Rule, Details: c.diagnosis.Details,
		UserRequest: w.ID, Verb: w.Verb, By: w.By, Text: w.Text, Run: rand.Text(),
		Act: recovery.Act{
			Agent: c.Key, At: r.now.Wall.Round(0), Rung: rung, Class: string(c.diagnosis.Class), Stall: string(c.diagnosis.Stall),
			Phase: c.subject.phase, Since: r.now.Wall, Sequence: c.agentState.Sequence, Deadline: r.now.Wall.Add(c.recovery.Verify[rung]),
			Asked: w.Verb,
		},
	}
	r.equip(c, rec)
	if err := r.ledger.writeDown(ctx, rec); err != nil {
		return "", err
	}
	if err := r.executor.advance(ctx, rec); err != nil {
		return "", err
	}
	// Nobody may see it alive if it ends at once.
	if s := r.agentStates.all[c.Key]; s.Stopped && rung.Starts() && rec.Step == completed {
		s.Stopped = false
		return rec.answer(), r.agentStates.set(ctx, c.Key, s)
	}
	return rec.answer(), nil
}

func (rec *attempt) answer() string {
	if rec.Outcome != "" {
		return rec.Outcome
	}
	return string(rec.Step)
}

// stop ends the agent, and nothing is done about it until it works again.
func (r *round) stop(ctx context.Context, c *examined, w UserRequest) (string, error) {
	if t := c.subject.target; len(t.Leaders) == 0 && len(t.Runs) == 0 {
		return "nothing is done: its process is not known", nil
	}
	r.opts.Acting()
	if err := r.opts.processes.Stop(ctx, c.subject.target); err != nil {
		return "", err
	}
	r.ledger.acted = true
	r.opts.checkpoint("ended")
	s := r.agentStates.all[c.Key]
	s.Stopped = true
	errs := []error{r.agentStates.set(ctx, c.Key, s)}
	for _, i := range r.incidents.open(c.Key) {
		errs = append(errs, r.incidents.tell(ctx, c.agent, i, incident.Gone{Why: "stopped by " + w.By}, nil))
	}
	return "stopped", errors.Join(errs...)
}

// decideRequest answers a request for a permission.
func (r *round) decideRequest(ctx context.Context, w UserRequest) (string, error) {
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
	err = hooks.Answer(hooks.Dir(r.opts.Home), id, nonce, hooks.Decision{Allow: w.Verb == string(incident.Allow)}, w.By)
	var late *hooks.SettledError
	switch {
	case errors.As(err, &late):
		return late.Error(), nil
	case err != nil:
		return "", err
	}
	// Its CLI does not say that it goes on before the tool has ended.
	s := r.agentStates.all[w.Agent]
	s.Asks = hookState{}
	return w.Verb, r.agentStates.set(ctx, w.Agent, s)
}

// lookAt looks at one agent by itself.
func (r *round) lookAt(a agent) *examined {
	c := &examined{agent: a, known: r.known(a)}
	r.gather(c)
	c.problem = r.problem(c)
	return c
}
