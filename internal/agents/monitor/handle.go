package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// handle acts on one agent as its diagnosis requires.
func (r *round) handle(ctx context.Context, c *examined) error {
	if c.problem.Class == "" {
		return errors.Join(r.announce(ctx, c), r.well(ctx, c))
	}
	if c.diagnosis.Stall != diagnose.NoStall {
		r.stalled++
	}
	if err := r.endWaits(ctx, c); err != nil {
		return err
	}
	d := r.decide(c)
	r.ledger.fleet = r.ledger.fleet.Note(c.problem, d, r.now.Wall)
	log := r.opts.Logger.With(slog.String("agent", c.Name), slog.String("trouble", c.problem.Class), slog.String("rule", c.diagnosis.Rule))
	switch {
	case d.Attended:
		log.Info("left alone", slog.String("reason", d.Reason))
		return errors.Join(r.spare(ctx, c, d), r.news(ctx, c))
	case d.Rung == recovery.Nothing:
		log.Debug("left alone", slog.String("reason", d.Reason), slog.String("details", c.diagnosis.Details))
		return r.news(ctx, c)
	case d.Rung == recovery.Escalate:
		if err := r.escalate(ctx, c, d); err != nil {
			return err
		}
		log.Warn("a human is told", slog.String("reason", d.Reason), slog.String("details", c.diagnosis.Details))
		return nil
	}
	return r.carryOut(ctx, c, d, log)
}

func (r *round) decide(c *examined) recovery.Decision {
	can := r.capabilities(c)
	guarded := !c.diagnosis.MayKill() && c.underWay() || c.diagnosis.EndsWork(c.evidence, c.expect)
	if guarded && !c.isProject() {
		can.UnderWay = true
		can.Interrupt = can.Interrupt && c.diagnosis.Class == diagnose.BudgetExceeded // its owner wants it stopped
	}
	policy := c.recovery
	policy.Fleet = r.snapshot.fleet
	return recovery.Decide(c.problem, r.history(c), policy, can, r.ledger.fleet, r.now.Wall)
}

// spare records once that an agent is left alone because a person is at its session.
func (r *round) spare(ctx context.Context, c *examined, d recovery.Decision) error {
	s := r.agentStates.all[c.Key]
	if s.Trouble.Spared {
		return nil
	}
	s.Trouble.Spared = true
	entry := c.entryOf(r.now.Wall, d)
	entry.Action, entry.Outcome = "none", d.Reason
	if err := r.store.do(ctx, func(tx *sql.Tx) error { return journal(ctx, tx, entry) }); err != nil {
		return err
	}
	c.agentState = s
	return r.agentStates.set(ctx, c.Key, s)
}

// underWay reports whether the agent may be in the middle of something. If the diagnosis does not justify a kill, only
// dead agents and those whose turns are over are replaced: after a limit was lifted, nothing continues by itself.
func (c *examined) underWay() bool {
	if c.evidence.Process.Life == diagnose.Dead {
		return false
	}
	over := len(c.evidence.Sessions) > 0
	for _, s := range c.evidence.Sessions {
		over = over && (s.Ended || s.Status == agentcli.Idle)
	}
	return !over
}

// hasAnswered reports whether no session has ended its turn with an error or a question.
func (c *examined) hasAnswered() bool {
	return !slices.ContainsFunc(c.evidence.Sessions, func(s diagnose.Session) bool { return s.Error.Kind != "" || s.EndedAsking })
}

// history is what was done about an agent before.
func (r *round) history(c *examined) recovery.History {
	h := recovery.History{Acts: awake(acts(r.ledger.all[c.Key]), r.sleeps), Blind: c.agentState.Blind, Reset: c.agentState.Reset}
	key := c.incidentKey()
	h.Open = c.diagnosis.Class == diagnose.WaitingServer && r.serverTold(c)
	for _, i := range r.incidents.open(c.Key) {
		h.Open = h.Open || i.Key.Class == key.Class && i.Key.Phase == key.Phase
		h.Held = h.Held || recovery.NeedsHuman(i.Key.Class, i.Facts.Stall)
	}
	return h
}

// awake shifts past acts by the time the machine slept, since nothing could help meanwhile. Waits for external events
// are not shifted: limits and networks recover while the machine sleeps.
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

// capabilities are the actions possible with the agent now.
func (r *round) capabilities(c *examined) recovery.Capabilities {
	if c.isProject() {
		return recovery.PIVCapabilities()
	}
	s := c.Declared.Start
	if c.subject.stranger != "" { // no start beside a process that may be the agent
		return recovery.Capabilities{Nudge: len(s.Nudge) > 0, Ask: r.canAsk(c)}
	}
	dead := c.evidence.Process.Life == diagnose.Dead
	known := c.subject.process != (process.Identity{}) && c.evidence.Process.Life == diagnose.Alive
	return recovery.Capabilities{
		Nudge: !dead && len(s.Nudge) > 0, Ask: r.canAsk(c), Reached: len(r.incidents.policyOf(c.agent).Tiers) > 0, Ended: dead,
		RestartServer: known && r.mayRestartServer(c), KillTool: known && !c.subject.tool.IsZero(), Interrupt: known && !agentcli.Of(c.Kind).EndsOnSIGINT,
		Resume:  len(s.Resume) > 0 && (c.subject.session != "" || !wants(s.Resume, "session")),
		Restart: len(s.Cmd) > 0, Fresh: wants(s.Cmd, "text"),
	}
}

// canAsk reports whether the agent's question can be sent to a human and the answer to the agent: a button answers a
// permission request, a reply goes to the session, and a question can be answered in its terminal.
func (r *round) canAsk(c *examined) bool {
	return c.diagnosis.Class == diagnose.WaitingQuestion || c.subject.request != "" && len(r.incidents.policyOf(c.agent).Tiers) > 0
}

// unwatched are the classes of agents that are not reported.
var unwatched = []diagnose.Class{diagnose.NotWatched, diagnose.Paused, diagnose.Complete}

// waits are the classes of agents that wait for an answer.
var waits = []diagnose.Class{diagnose.WaitingPermission, diagnose.WaitingQuestion}

// endWaits closes incidents about questions that the agent no longer asks because it is in other trouble now. It also
// closes incidents about a process that was replaced, unless a human has to handle them.
func (r *round) endWaits(ctx context.Context, c *examined) error {
	if c.isProject() || c.diagnosis.Stall == diagnose.Blind {
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

// shown are the classes of working agents: only they close an incident, and count as recovered.
var shown = []diagnose.Class{diagnose.Healthy, diagnose.AtWork, diagnose.Idle, diagnose.Done}

// works reports whether the agent does its work. One that shows only its process is working once it has lived for a
// while.
func (c *examined) works() bool {
	if c.agentState.Stopped {
		return false
	}
	alone := c.diagnosis.Class == diagnose.Unobserved && time.Duration(c.evidence.Process.Age) > c.recovery.Verify[recovery.Restart]
	return alone || slices.Contains(shown, c.diagnosis.Class)
}

// well closes what is over: the agent works again, or is no longer wanted.
func (r *round) well(ctx context.Context, c *examined) error {
	works := c.works()
	if works {
		if r.ledger.fleet.Held(c.Key) != nil { // the other agents of the mass may follow
			r.ledger.fleet = r.ledger.fleet.Recovered(c.Key, r.now.Wall)
		}
		if err := r.ledger.prove(ctx, c); err != nil {
			return err
		}
	}
	if !works && !c.agentState.Stopped && !slices.Contains(unwatched, c.diagnosis.Class) {
		return nil // it has shown nothing yet
	}
	open := r.incidents.open(c.Key)
	if works && r.ledger.unproved(c.Key) {
		return nil // its evidence is older than the action
	}
	for _, i := range open {
		var ev incident.Event = incident.Gone{Why: c.diagnosis.Details}
		if works {
			ev = incident.Recovered{How: r.ledger.how(c.Key)}
		}
		if err := r.incidents.tell(ctx, c.agent, i, ev, nil); err != nil {
			return err
		}
	}
	if works && len(open) > 0 && c.isProject() && c.Status != piv.Running {
		return r.registryStore.change([]piv.Change{{Key: c.Key, Status: piv.Running}}, r.now.Wall)
	}
	return nil
}

// registryKey is the agent key of incidents about the registry.
const registryKey = ""

// registryQuiet is how long a PIV registry must be intact until its next failure is reported: failures come in groups.
const registryQuiet = time.Hour

// mendRegistry handles an unusable registry. A PIV registry is kept aside and replaced by the last good copy, since all
// agents write into it; version 2 is left to its owner. A human is notified once.
func (r *round) mendRegistry(ctx context.Context) error {
	for _, warning := range r.registryStore.warnings(r.snapshot.Registry) {
		r.opts.Logger.Warn("the registry has an oddity", slog.String("warning", r.opts.redact(warning)))
	}
	news := r.registryStore.news(r.snapshot.Lost)
	if r.snapshot.Lost == "" {
		var err error
		if len(r.agents()) == len(r.snapshot.Agents) { // else a running one is missing: another writer may have begun with a broken file
			err = r.registryStore.save(ctx)
		}
		return errors.Join(err, r.incidents.closeRegistryIncident(ctx))
	}
	if news {
		r.opts.Logger.Error("the registry cannot be used", slog.String("reason", r.opts.redact(r.snapshot.Lost)))
	}
	taken := "the last good copy is used"
	keep := r.snapshot.Broken != nil && !r.snapshot.declared()
	if keep {
		aside, err := r.registryStore.keepAside(r.snapshot)
		if err != nil {
			return fmt.Errorf("keep the broken registry aside: %w", err)
		}
		taken = "kept aside as " + aside
		if r.registryStore.last != nil {
			taken += "; the last good copy takes its place"
		}
	}
	r.opts.checkpoint("aside")
	if err := r.incidents.tellOfRegistry(ctx, taken); err != nil {
		return err
	}
	r.opts.checkpoint("told")
	if !keep || r.registryStore.last == nil {
		return nil
	}
	if err := r.registryStore.restore(r.snapshot); err != nil && !errors.Is(err, atomicfile.ErrChanged) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// The heartbeats in the copy are old; the agents soon write new ones.
	err := r.pause(ctx, r.now.Wall, "the registry was restored only just")
	r.setting.grace = r.why
	return err
}

// tellStatuses sets the status of escalated agents in the PIV registry. An agent that sends heartbeats again sets
// "running" itself.
func (r *round) tellStatuses(ctx context.Context) error {
	if r.snapshot.Lost != "" || r.snapshot.declared() || ctx.Err() != nil {
		return nil
	}
	var changes []piv.Change
	for _, a := range r.snapshot.Agents {
		list := r.incidents.open(a.Key)
		if len(list) == 0 || a.Status != piv.Running {
			continue
		}
		status := piv.Stalled
		if list[len(list)-1].Facts.Stall == string(diagnose.Errored) {
			status = piv.Failed
		}
		changes = append(changes, piv.Change{Key: a.Key, Status: status})
	}
	return r.registryStore.change(changes, r.now.Wall)
}
