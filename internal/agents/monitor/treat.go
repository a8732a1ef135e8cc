package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// treat does what is to be done about one agent.
func (r *round) treat(ctx context.Context, c *examined) error {
	if c.problem.Class == "" {
		return errors.Join(r.announce(ctx, c), r.well(ctx, c))
	}
	if c.verdict.Stall != diagnose.NoStall {
		r.stalled++
	}
	if err := r.endWaits(ctx, c); err != nil {
		return err
	}
	d := r.decide(c)
	r.ledger.fleet = r.ledger.fleet.Note(c.problem, d, r.now.Wall)
	log := r.opts.Logger.With(slog.String("project", c.Name), slog.String("stall", c.problem.Stall), slog.String("rule", c.verdict.Rule))
	switch {
	case d.Attended:
		log.Info("left alone", slog.String("reason", d.Reason))
		return errors.Join(r.spare(ctx, c, d), r.news(ctx, c))
	case d.Rung == recovery.Nothing:
		log.Debug("left alone", slog.String("reason", d.Reason), slog.String("details", c.verdict.Details))
		return r.news(ctx, c)
	case d.Rung == recovery.Escalate:
		if err := r.escalate(ctx, c, d); err != nil {
			return err
		}
		log.Warn("a human is told", slog.String("reason", d.Reason), slog.String("details", c.verdict.Details))
		return nil
	}
	return r.carryOut(ctx, c, d, log)
}

func (r *round) decide(c *examined) recovery.Decision {
	can := r.capabilities(c)
	if c.Declared != nil && !c.verdict.MayKill() && c.underWay() {
		can.UnderWay = true
		can.Interrupt = can.Interrupt && c.verdict.Class == diagnose.BudgetExceeded // which is what its owner wants
	}
	return recovery.Decide(c.problem, r.history(c), c.recovery, can, r.ledger.fleet, r.now.Wall)
}

// spare says once in the record that an agent is left alone because a person is at its session.
func (r *round) spare(ctx context.Context, c *examined, d recovery.Decision) error {
	s := r.sights.all[c.Key]
	if s.Trouble.Spared {
		return nil
	}
	s.Trouble.Spared = true
	entry := c.entryOf(r.now.Wall, d)
	entry.Action, entry.Outcome = "none", d.Reason
	if err := r.do(ctx, func(tx *sql.Tx) error { return journal(ctx, tx, entry) }); err != nil {
		return err
	}
	c.sight = s
	return r.sights.set(ctx, c.Key, s)
}

// underWay reports whether the agent may be in the middle of something. Of a verdict that is no reason to end anything,
// only a dead process, and one whose turns are all over, is replaced: at a limit that has been lifted nobody goes on.
func (c *examined) underWay() bool {
	if c.evidence.Process.Life == diagnose.Dead {
		return false
	}
	over := len(c.evidence.Sessions) > 0
	for _, s := range c.evidence.Sessions {
		over = over && (s.Ended || s.Status == diagnose.IdleStatus)
	}
	return !over
}

// history is what was done about an agent before.
func (r *round) history(c *examined) recovery.History {
	h := recovery.History{Acts: awake(acts(r.ledger.all[c.Key]), r.sleeps), Blind: c.sight.Blind, Reset: c.sight.Reset}
	key := c.incidentKey()
	for _, i := range r.incidents.open(c.Key) {
		h.Open = h.Open || i.Key.Class == key.Class && i.Key.Phase == key.Phase
		h.Held = h.Held || recovery.NeedsHuman(i.Key.Class, i.Facts.Stall)
	}
	return h
}

// awake gives what was done the time to help that it lost while the machine slept: nobody could answer or go on meanwhile. What
// waits for somebody else's clock is not: a limit is lifted, and a network back, while the machine sleeps.
func awake(list []recovery.Act, sleeps []Sleep) []recovery.Act {
	for i := range list {
		a := &list[i]
		for _, s := range sleeps {
			waits := a.Rung == recovery.Hold && a.Class != string(diagnose.APIBackoff)
			if !waits && s.End.After(a.At) && s.End.Add(-s.Length).Before(a.Deadline) {
				a.Deadline = a.Deadline.Add(min(s.Length, s.End.Sub(a.At)))
			}
		}
	}
	return list
}

// capabilities are what can be done with the agent now.
func (r *round) capabilities(c *examined) recovery.Capabilities {
	if c.Declared == nil {
		return recovery.PIVCapabilities()
	}
	s := c.Declared.Start
	if c.body.stranger != "" { // beside a process that may be the agent after all, no other is started
		return recovery.Capabilities{Nudge: len(s.Nudge) > 0, Ask: r.canAsk(c)}
	}
	dead := c.evidence.Process.Life == diagnose.Dead
	known := c.body.process != (process.Identity{}) && c.evidence.Process.Life == diagnose.Alive
	return recovery.Capabilities{
		Nudge: !dead && len(r.panes.nudge(c)) > 0, Ask: r.canAsk(c), Reached: len(r.incidents.policyOf(c.agent).Tiers) > 0, Ended: dead,
		KillTool: known && !c.body.tool.IsZero(), Interrupt: known && !agentcli.Of(c.Kind).EndsOnSIGINT,
		Resume:  len(s.Resume) > 0 && (c.body.session != "" || !wants(s.Resume, "session")),
		Restart: len(s.Cmd) > 0, Fresh: wants(s.Cmd, "text"),
	}
}

// canAsk reports whether what the agent asks can be put to a human, and the answer to the agent: a button answers a
// request for a permission, a reply is handed to the session, and a question can be answered at its own terminal as well.
func (r *round) canAsk(c *examined) bool {
	return c.verdict.Class == diagnose.WaitingQuestion || c.body.request != "" && len(r.incidents.policyOf(c.agent).Tiers) > 0
}

// unwatched are the classes of agents that nobody wants to be told of.
var unwatched = []diagnose.Class{diagnose.NotWatched, diagnose.Paused, diagnose.Complete}

// waits are the classes of agents that wait for an answer.
var waits = []diagnose.Class{diagnose.WaitingPermission, diagnose.WaitingQuestion}

// endWaits ends the incidents of a declared agent that has waited for an answer, and is in other trouble now: nobody shall
// answer what nobody asks any more. Neither shall anybody be reminded of a process that was replaced since, unless a human
// has to see to what was wrong with it.
func (r *round) endWaits(ctx context.Context, c *examined) error {
	if c.Declared == nil || c.verdict.Stall == diagnose.Blind {
		return nil
	}
	for _, i := range r.incidents.open(c.Key) {
		gone := incident.Gone{Why: "it waits no longer, it is " + c.problem.Class + " now"}
		switch class := diagnose.Class(i.Key.Class); {
		case i.Key.Class == c.problem.Class:
			continue
		case slices.Contains(waits, class):
		case r.ledger.replacedSince(c.Key, i.Opened) && !recovery.NeedsHuman(i.Key.Class, i.Facts.Stall):
			gone.Why = "it was started again, and is " + c.problem.Class + " now"
		default:
			continue
		}
		if err := r.incidents.tell(ctx, c.agent, i, gone, nil); err != nil {
			return err
		}
	}
	return nil
}

// shown are the classes that say that an agent does its work: only they end an incident, and count as recovered.
var shown = []diagnose.Class{diagnose.Healthy, diagnose.AtWork, diagnose.Idle, diagnose.Done}

// works reports whether the agent shows that it does its work. One that shows nothing but its process has done so when it
// has lived for a while.
func (c *examined) works() bool {
	if c.sight.Stopped {
		return false
	}
	alone := c.Declared != nil && c.verdict.Class == diagnose.Unobserved && time.Duration(c.evidence.Process.Age) > c.recovery.Verify[recovery.Restart]
	return alone || slices.Contains(shown, c.verdict.Class)
}

// well ends what is over: the agent works again, or nobody wants it to.
func (r *round) well(ctx context.Context, c *examined) error {
	works := c.works()
	if works {
		if held(r.ledger.fleet, c.Key) { // by itself, or by what was done: the others may follow
			r.ledger.fleet = r.ledger.fleet.Recovered(c.Key, r.now.Wall)
		}
		if err := r.ledger.prove(ctx, c); err != nil {
			return err
		}
	}
	if !works && !c.sight.Stopped && !slices.Contains(unwatched, c.verdict.Class) {
		return nil // it has not shown anything yet
	}
	open := r.incidents.open(c.Key)
	if works && r.ledger.unproved(c.Key) {
		return nil // what it shows is older than what was done
	}
	for _, i := range open {
		var ev incident.Event = incident.Gone{Why: c.verdict.Details}
		if works {
			ev = incident.Recovered{How: r.ledger.how(c.Key)}
		}
		if err := r.incidents.tell(ctx, c.agent, i, ev, nil); err != nil {
			return err
		}
	}
	if works && len(open) > 0 && c.Declared == nil && c.Entry.Status != piv.Running {
		running := piv.Running
		return r.book.change([]piv.Change{{Key: c.Key, Status: &running}}, r.now.Wall)
	}
	return nil
}

// mendRegistry deals with a registry that cannot be used. A PIV registry is kept aside, and the last good copy takes its place,
// since everybody writes into it; that of version 2 is its owner's to mend. A human is told once.
func (r *round) mendRegistry(ctx context.Context) error {
	news := r.page.Lost != r.lost
	r.lost = r.page.Lost
	if r.page.Lost == "" {
		return errors.Join(r.saveRegistry(ctx), r.incidents.closeRegistryIncident(ctx))
	}
	if news {
		r.opts.Logger.Error("the registry cannot be used", slog.String("reason", r.opts.redact(r.page.Lost)))
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
	if err := r.incidents.tellOfRegistry(ctx, taken); err != nil {
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
	for key, s := range r.sights.all {
		if s.Entry.Status == piv.Running && !s.Declared && !there[key] {
			return nil
		}
	}
	return r.book.save(ctx)
}

// tellStatuses lets the PIV registry say of whom a human was told. Whoever beats again says "running" itself.
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
