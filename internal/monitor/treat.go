package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/outlive-mcp/outlive/internal/diagnose"
	"github.com/outlive-mcp/outlive/internal/escalate"
	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/process"
	"github.com/outlive-mcp/outlive/internal/remedy"
)

// treat does what is to be done about one agent.
func (r *round) treat(ctx context.Context, c *examined) error {
	if c.problem.Class == "" {
		return r.well(ctx, c)
	}
	if c.verdict.Stall != diagnose.NoStall {
		r.summary.Stalled++
	}
	d := r.decide(c)
	r.fleet = r.fleet.Note(c.problem, d, r.now.Wall)
	log := r.opts.Logger.With(slog.String("project", c.Name), slog.String("stall", c.problem.Stall), slog.String("rule", c.verdict.Rule))
	switch {
	case d.Rung == remedy.Nothing:
		log.Debug("left alone", slog.String("reason", d.Reason), slog.String("details", c.verdict.Details))
		return r.news(ctx, c)
	case d.Rung == remedy.Escalate:
		log.Warn("a human is told", slog.String("reason", d.Reason), slog.String("details", c.verdict.Details))
		return r.escalate(ctx, c, d)
	}
	log.Warn("something is done", slog.String("action", string(d.Rung)), slog.String("reason", d.Reason), slog.String("details", c.verdict.Details))
	return r.carryOut(ctx, c, d)
}

func (r *round) decide(c *examined) remedy.Decision {
	return remedy.Decide(c.problem, r.history(c), c.recovery, c.capabilities(), r.fleet, r.now.Wall)
}

// history is what was done about an agent before.
func (r *round) history(c *examined) remedy.History {
	h := remedy.History{Acts: acts(r.recoveries[c.Key]), Blind: c.sight.Blind, Reset: c.sight.Reset}
	key := c.incidentKey()
	for _, i := range r.open(c.Key) {
		h.Open = h.Open || i.Key.Class == key.Class && i.Key.Phase == key.Phase
		h.Held = h.Held || remedy.NeedsHuman(i.Key.Class, i.Facts.Stall)
	}
	return h
}

// capabilities are what can be done with the agent now.
func (c *examined) capabilities() remedy.Capabilities {
	if c.Declared == nil {
		return remedy.S4Capabilities()
	}
	s := c.Declared.Start
	known := c.body.process != (process.Identity{}) && c.evidence.Process.Life == diagnose.Alive
	return remedy.Capabilities{
		Nudge: len(s.Nudge) > 0, Ask: c.body.request != "",
		KillTool: known && !c.body.tool.IsZero(), Interrupt: known,
		Resume:  len(s.Resume) > 0 && (c.body.session != "" || !wants(s.Resume, "session")),
		Restart: len(s.Cmd) > 0, Fresh: wants(s.Cmd, "text"),
	}
}

// shown are the classes that say that an agent does its work: only they end an incident, and count as recovered.
var shown = []diagnose.Class{diagnose.Healthy, diagnose.AtWork, diagnose.Idle, diagnose.Done}

// well ends what is over: the agent works again, or nobody wants it to.
func (r *round) well(ctx context.Context, c *examined) error {
	works := slices.Contains(shown, c.verdict.Class)
	if works {
		if held(r.fleet, c.Key) { // by itself, or by what was done: the others may follow
			r.fleet = r.fleet.Recovered(c.Key, r.now.Wall)
		}
		if err := r.prove(ctx, c); err != nil {
			return err
		}
	}
	if !works && c.evidence.Watched && c.verdict.Class != diagnose.Complete {
		return nil // it has not shown anything yet
	}
	open := r.open(c.Key)
	for _, i := range open {
		var ev escalate.Event = escalate.Gone{Why: c.verdict.Details}
		if works {
			ev = escalate.Recovered{How: r.how(c)}
		}
		if err := r.tell(ctx, c.agent, i, ev, nil); err != nil {
			return err
		}
	}
	if works && len(open) > 0 && c.Declared == nil && c.Entry.Status != piv.Running {
		running := piv.Running
		return r.book.change([]piv.Change{{Key: c.Key, Status: &running}}, r.now.Wall)
	}
	return nil
}

// prove marks what was done before the agent showed new evidence: that, and nothing else, is a recovery.
func (r *round) prove(ctx context.Context, c *examined) error {
	list := r.recoveries[c.Key]
	proved, news := remedy.Prove(acts(list), c.sight.Sequence, r.now.Wall)
	if !news {
		return nil
	}
	return r.do(ctx, func(tx *sql.Tx) error {
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
			r.opts.Logger.Info("the agent works again", slog.String("project", c.Name), slog.String("after", string(list[i].Act.Rung)))
		}
		return errors.Join(errs...)
	})
}

// how says what has helped, for people.
func (r *round) how(c *examined) string {
	starts := 0
	for _, rec := range r.recoveries[c.Key] {
		if rec.Act.Rung.Starts() && !rec.Act.Refunded && !rec.Act.Proved.IsZero() && rec.Act.Proved.Equal(r.now.Wall) {
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

// mendRegistry deals with a registry that cannot be used. S4's is kept aside, and the last good copy takes its place,
// since everybody writes into it; that of version 2 is its owner's to mend. A human is told once.
func (r *round) mendRegistry(ctx context.Context) error {
	news := r.page.Lost != r.lost
	r.lost = r.page.Lost
	if r.page.Lost == "" {
		return errors.Join(r.saveRegistry(ctx), r.closeRegistryIncident(ctx))
	}
	if news {
		r.opts.Logger.Error("the registry cannot be used", slog.String("reason", r.page.Lost))
	}
	taken := "the last good copy is used"
	keep := r.page.Broken != nil && !r.page.declared()
	if keep {
		aside, err := r.book.keepAside(r.page)
		if err != nil {
			return fmt.Errorf("keep the broken registry aside: %w", err)
		}
		taken = "kept aside as " + aside
		if r.book.last != nil {
			taken += "; the last good copy takes its place"
		}
	}
	r.opts.checkpoint("aside")
	if err := r.tellOfRegistry(ctx, taken); err != nil {
		return err
	}
	r.opts.checkpoint("told")
	if !keep || r.book.last == nil {
		return nil
	}
	return r.restoreRegistry(ctx)
}

// saveRegistry makes the registry the last good copy, unless it lacks somebody who was running: then a broken one may
// have been taken for a good one by another writer.
func (r *round) saveRegistry(ctx context.Context) error {
	if r.page.declared() {
		return r.book.save(ctx)
	}
	there := map[string]bool{}
	for _, a := range r.page.Agents {
		there[a.Key] = true
	}
	for key, s := range r.sights {
		if s.Entry.Status == piv.Running && !s.Declared && !there[key] {
			return nil
		}
	}
	return r.book.save(ctx)
}

// tellStatuses lets S4's registry say of whom a human was told. Whoever beats again says "running" itself.
func (r *round) tellStatuses(ctx context.Context) error {
	if r.page.Lost != "" || r.page.declared() || ctx.Err() != nil {
		return nil
	}
	incidents, err := r.store.incidents(ctx, r.now.Wall)
	if err != nil {
		return err
	}
	var changes []piv.Change
	for _, a := range r.page.Agents {
		list := opened(incidents, a.Key)
		if len(list) == 0 || a.Entry.Status != piv.Running {
			continue
		}
		status := piv.Stalled
		if list[len(list)-1].Facts.Stall == string(diagnose.Errored) {
			status = piv.Failed
		}
		changes = append(changes, piv.Change{Key: a.Key, Status: &status})
	}
	return r.book.change(changes, r.now.Wall)
}
