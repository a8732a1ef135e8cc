package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// round is one look at everything. Its parts hold the results: what was seen, what was done, what humans were told.
type round struct {
	*Monitor
	now      Clocks
	snapshot snapshot
	setting  setting
	fault    error // which of the agents' signs cannot be read
	stalled  int   // agents

	agentStates stateCache
	ledger      ledger
	incidents   incidents
	executor    executor
	fleet       fleetReporter
}

// look inspects every agent once and acts where needed.
func (m *Monitor) look(ctx context.Context) (Summary, error) {
	m.undone = nil
	r, err := m.begin(ctx)
	if err != nil {
		return Summary{}, err
	}
	before := r.ledger.fleet
	errs := []error{r.fault, r.mendRegistry(ctx), r.reconcile(ctx), r.hear(ctx), r.handleRequests(ctx), r.dropRemoved(ctx)}
	cases := r.examine(ctx, &errs)
	var problems []recovery.Problem
	for _, c := range cases {
		problems = append(problems, c.problem)
		for _, id := range c.subject.answered {
			errs = append(errs, hooks.Withdraw(hooks.Dir(m.opts.Home), id))
		}
	}
	r.ledger.fleet = r.ledger.fleet.See(problems, r.snapshot.fleet, r.now.Wall)
	for _, c := range cases {
		if ctx.Err() != nil {
			break
		}
		if err := r.handle(ctx, c); err != nil {
			if unwritable(err) {
				m.undone = append(m.undone, fmt.Sprintf("%s (%s)", c.Name, c.problem.Class))
			}
			errs = append(errs, fmt.Errorf("%s: %w", c.agent.Key, err))
		}
	}
	errs = append(errs, m.noteVerdicts(ctx, cases, r.now.Wall), r.tellOfServers(ctx, cases), r.fleet.tellOfFleet(ctx), r.fleet.followShared(ctx))
	errs = append(errs, r.incidents.followMasses(ctx, r.ledger.fleet.Masses), r.ledger.saveFleet(ctx, before), r.incidents.deliveries(ctx), r.incidents.timers(ctx), r.digest(ctx), r.tellStatuses(ctx), r.tellStanding(ctx, cases), m.store.writeJournal(ctx, m.opts.Log, m.opts.checkpoint))
	m.watch(cases)
	m.notifiers.outbox.Wake()
	err = errors.Join(errs...)
	m.doubtful = m.doubtful || err != nil
	return Summary{Projects: len(r.snapshot.Agents), Stalled: r.stalled, Recovered: r.executor.recovered, Escalated: r.incidents.escalated}, err
}

// begin reads the clocks, the registry and the state of earlier looks.
func (m *Monitor) begin(ctx context.Context) (*round, error) {
	r := &round{Monitor: m, now: m.opts.clock()}
	r.join()
	if err := m.passTime(ctx, r.now); err != nil {
		return nil, err
	}
	r.snapshot = m.registryStore.read(ctx)
	p := r.snapshot
	m.seen.Store(&p)
	if err := m.openNotifiers(ctx, &p); err != nil {
		m.complain(err)
	}
	var errs [4]error
	if m.doubtful {
		m.agentStates, errs[0] = m.store.agentStates(ctx)
		m.recoveries, errs[1] = m.store.recoveries(ctx)
	}
	r.agentStates.all, r.ledger.all = m.agentStates, m.recoveries
	r.incidents.list, errs[2] = m.store.incidentsSince(ctx, r.now.Wall.Add(-incidentsKept))
	_, errs[3] = fact(ctx, m.store.db, "fleet", &r.ledger.fleet)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	m.doubtful = false
	m.sources.looks++
	r.setting = setting{now: r.now, sleeps: m.sleeps, lost: r.snapshot.Lost, sources: m.sources, kept: &m.kept}
	switch {
	case r.now.Boot != "" && r.now.Up < resumeGrace:
		r.setting.grace = "the machine was started only just"
		// After a boot, other programs may not have started the agents yet. Declared agents need no such grace: they run
		// behind our wrapper, which refuses a second start.
		r.setting.graceDead = !r.snapshot.declared() || r.now.Up < bootGrace
	case r.now.Wall.Before(m.grace) && m.grace.Sub(r.now.Wall) <= resumeGrace: // later: the clock was set back since
		r.setting.grace = m.why
	}
	r.fault = errors.Join(r.refresh(ctx), r.sources.faults())
	return r, nil
}

// join connects the parts.
func (r *round) join() {
	m, now := r.Monitor, r.now.Wall
	r.agentStates.store = m.store
	r.ledger = ledger{store: m.store, opts: &m.opts, now: now}
	r.incidents = incidents{m: m, snapshot: &r.snapshot, now: now}
	r.executor = executor{m: m, snapshot: &r.snapshot, now: now, ledger: &r.ledger, incidents: &r.incidents, round: r}
	r.fleet = fleetReporter{m: m, incidents: &r.incidents, now: now, memory: &m.reported}
}

// refresh reads what declared agents show.
func (r *round) refresh(ctx context.Context) error {
	r.ledger.acted = false
	if !r.snapshot.declared() || r.opts.evidence != nil {
		return nil
	}
	err := r.sources.refresh(ctx, r.store, r.now.Wall, r.snapshot.Agents, r.agentStates.all)
	return errors.Join(err, r.kept.refresh(ctx, r.store, r.sources, r.now.Wall))
}

// passTime detects a sleep of the machine, or a clock change, since the last look.
func (m *Monitor) passTime(ctx context.Context, now Clocks) error {
	asleep, errStep := Gap(m.last, now), m.noteStep(ctx, now)
	unseen := time.Duration(0)
	if m.last.Boot != now.Boot || m.last.Wall.IsZero() { // the first look since boot
		unseen = UnseenSleep(now)
	}
	m.last = now
	if asleep == 0 && unseen == 0 {
		return errStep
	}
	errs := []error{
		errStep,
		m.pause(ctx, now.Wall, fmt.Sprintf("the machine slept, or its clock was set, for %s", (asleep+unseen).Round(time.Second))),
		setFact(ctx, m.store.db, "moment", now),
	}
	m.opts.Logger.Info("stall detection is paused", slog.String("reason", m.why), slog.Time("until", m.grace))
	if asleep > 0 {
		s := Sleep{End: now.Wall, Length: asleep}
		m.sleeps = append(m.sleeps, s)
		errs = append(errs, m.store.addSleep(ctx, s))
	}
	return errors.Join(errs...)
}

// noteStep notes that the clock was set forward since the last look. Steps are forgotten when it was set back, or after long.
func (m *Monitor) noteStep(ctx context.Context, now Clocks) error {
	steps := slices.DeleteFunc(slices.Clone(m.sources.steps), func(s Sleep) bool {
		return s.End.After(now.Wall) || now.Wall.Sub(s.End) > forgetAfter
	})
	if step := Step(m.last, now); step > 0 {
		steps = append(steps, Sleep{End: now.Wall.Round(0).Add(m.last.Mono - now.Mono), Length: step})
	}
	if slices.Equal(steps, m.sources.steps) {
		return nil
	}
	m.sources.steps = steps
	return setFact(ctx, m.store.db, "steps", steps)
}

// pause says why silence is no evidence for a while: every agent sends a heartbeat within it.
func (m *Monitor) pause(ctx context.Context, now time.Time, why string) error {
	m.grace, m.why = now.Add(resumeGrace), why
	return setFact(ctx, m.store.db, "grace", m.grace)
}

// agents are those of the registry, and those that vanished from a PIV registry while they were running. An agent
// missing in a registry of version 2 was removed by its owner.
func (r *round) agents() []agent {
	list := slices.Clip(r.snapshot.Agents)
	if r.snapshot.declared() {
		return list
	}
	for _, key := range slices.Sorted(maps.Keys(r.agentStates.all)) {
		_, there := r.snapshot.agent(key)
		if s := r.agentStates.all[key]; !there && !s.Declared && s.Entry.Status == piv.Running {
			list = append(list, r.opts.ofProject(s.Entry))
		}
	}
	return list
}

// known is the state of one agent from earlier looks.
type known struct {
	agentState agentState
	launch     *attempt    // our last start; nil: none
	nudged     []time.Time // when we gave it a text
	watched    bool        // a human was notified of it, and it is still watched although the registry calls it stalled
	vanished   bool
}

func (r *round) known(a agent) known {
	_, there := r.snapshot.agent(a.Key)
	k := known{agentState: r.agentStates.all[a.Key], watched: len(r.incidents.open(a.Key)) > 0, vanished: !there}
	list := r.ledger.all[a.Key]
	for i := range list {
		if act := list[i].Act; act.Rung == recovery.Nudge && !act.Refunded {
			k.nudged = append(k.nudged, act.At)
		}
	}
	for i := len(list) - 1; i >= 0 && k.launch == nil; i-- {
		switch list[i].Step {
		case started, completed, recovered:
			if list[i].Act.Rung.Starts() {
				k.launch = &list[i]
			}
		}
	}
	return k
}

// examined is one agent with its evidence and diagnosis.
type examined struct {
	agent
	known
	evidence  diagnose.Evidence
	diagnosis diagnose.Diagnosis
	since     time.Time // when it began to stand so, by this and earlier looks; zero: not known
	subject   finding
	problem   recovery.Problem
}

// finding is what an action needs besides the evidence.
type finding struct {
	target  process.Target
	process process.Identity // of the agent itself; zero: not known, or dead
	dead    process.Identity // the same, once it has ended
	typed   time.Time        // when a person last typed in it; zero: nobody has, or it is not known
	session string           // that could be gone on with
	// joinable says that people can join the agent's terminal; joined are those who have.
	joinable  bool
	piped     bool // it runs behind a wrapper, and has no terminal
	joined    []agentrun.Joined
	tool      time.Time // when the open tool was started; zero: there is none
	request   string    // the open request for a permission
	input     string    // what would run if it were allowed, in full
	answered  []string  // requests that hooks still hold, although a person has answered at the agent's own dialog
	tasksGone time.Time // since when all background tasks are gone; zero: they are not, or there is none
	unasked   string    // why such a request is left to the agent's own dialog
	nested    string    // the living CLIs that it has started, see [namesOf]
	moved     string    // what of its environment moves its CLI's files, see [program]
	shown     lastShown // what its session showed at the end of its process; zero: nothing, or it lives
	servers   []string  // keys of the MCP servers in the evidence, in the same order
	signs     string    // the latest signs of life in one word; "": there are none
	// stranger says why the process may not be the agent's: it is only observed, neither ended nor replaced.
	stranger string
	phase    int
	text     string // the last lines, or the start of a request at the agent's own dialog
}

// runs is the PID for actions; 0 if none is known.
func (f *finding) runs() int {
	if f.process.PID == 0 && len(f.target.Leaders) > 0 {
		return f.target.Leaders[0].PID
	}
	return f.process.PID
}

// examine gathers the evidence of all agents and judges it.
func (r *round) examine(ctx context.Context, errs *[]error) []*examined {
	var cases []*examined
	if r.ledger.acted {
		*errs = append(*errs, r.refresh(ctx))
	}
	for _, a := range r.agents() {
		c := &examined{agent: a, known: r.known(a)}
		r.gather(c)
		gone, err := r.remember(ctx, c)
		if err != nil {
			*errs = append(*errs, fmt.Errorf("%s: %w", a.Key, err))
		}
		if gone {
			continue
		}
		c.problem = r.problem(c)
		r.record(c, r.now.Wall)
		cases = append(cases, c)
	}
	*errs = append(*errs, r.agentStates.save(ctx))
	return cases
}

// gather collects the evidence of an agent and judges it. Secrets are removed from the diagnosis here, before it is stored
// or sent.
func (r *round) gather(c *examined) {
	if r.opts.evidence != nil {
		c.evidence, c.subject = r.opts.evidence(&c.agent)
	} else {
		c.evidence, c.subject = r.setting.gather(c.agent, c.known)
	}
	if !c.isProject() {
		c.Phase = c.subject.phase
	}
	c.diagnosis = diagnose.Classify(c.evidence, c.expect)
	c.diagnosis.Details, c.diagnosis.Doubt = r.opts.redact(c.diagnosis.Details), r.opts.redact(c.diagnosis.Doubt)
}

// remember stores what later looks need. gone says that the agent is no longer watched.
func (r *round) remember(ctx context.Context, c *examined) (gone bool, err error) {
	if c.vanished && len(r.incidents.open(c.Key)) > 0 {
		return true, r.dropVanished(ctx, c.agent) // a human was notified; there is nothing left to watch
	}
	s := c.known.agentState
	r.setting.rememberTrouble(c, &s)
	r.setting.rememberSince(c, &s)
	if !c.isProject() {
		r.setting.rememberAgent(c, &s)
	} else if r.snapshot.Lost == "" && !c.vanished {
		r.setting.rememberProject(c, &s)
	}
	if c.diagnosis.Stall == diagnose.Blind {
		s.Blind = min(s.Blind+1, c.recovery.BlindFor)
	} else {
		s.Blind = 0
	}
	if c.subject.signs != "" && c.subject.signs != s.Signs {
		s.Signs, s.Sequence = c.subject.signs, s.Sequence+1
	}
	was := c.known.agentState
	c.known.agentState = s
	if s != was {
		r.agentStates.note(c.Key, s)
	}
	return false, nil
}

// problem translates the diagnosis for recovery.
func (r *round) problem(c *examined) recovery.Problem {
	p := recovery.Problem{Agent: c.Key, Phase: c.subject.phase, Sequence: c.agentState.Sequence}
	v := c.diagnosis
	if c.agentState.Stopped || v.Well() && v.Class != diagnose.APIBackoff {
		return p
	}
	p.Class, p.Stall, p.Confidence = string(v.Class), string(v.Stall), string(v.Confidence)
	p.Typed = c.subject.typed
	p.Since, p.Until = c.agentState.Trouble.Since, c.agentState.Trouble.Until
	if !c.isProject() {
		p.Host, p.Account = "this machine", string(c.Kind)
		p.Reboot = c.subject.dead.Boot != "" && r.now.Boot != "" && c.subject.dead.Boot != r.now.Boot
	}
	return p
}

func (r *round) dropVanished(ctx context.Context, a agent) error {
	for _, i := range r.incidents.open(a.Key) {
		if err := r.incidents.tell(ctx, a, i, incident.Gone{Why: "it is no longer in the registry"}, nil); err != nil {
			return err
		}
	}
	return r.agentStates.drop(ctx, a.Key)
}
