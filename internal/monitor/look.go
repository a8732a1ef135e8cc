package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/process"
)

// round is one look at everything.
type round struct {
	*Monitor
	now        Moment
	page       page
	setting    setting
	sights     map[string]sight
	recoveries map[string][]recovery
	incidents  map[string][]incident
	summary    Summary
}

// look looks at every project once and does what is to be done.
func (m *Monitor) look(ctx context.Context) (Summary, error) {
	r, err := m.begin(ctx)
	if err != nil {
		return Summary{}, err
	}
	errs := []error{r.mendRegistry(ctx), r.reconcile(ctx)}
	for _, p := range r.projects() {
		if ctx.Err() != nil {
			break
		}
		if err := r.judge(ctx, p); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.Key, err))
		}
	}
	errs = append(errs, r.tellStatuses(ctx), m.store.writeJournal(ctx, m.opts.Log, m.opts.checkpoint))
	m.wake()
	return r.summary, errors.Join(errs...)
}

// begin reads the clocks, the registry and what earlier looks have left.
func (m *Monitor) begin(ctx context.Context) (*round, error) {
	r := &round{Monitor: m, now: m.opts.clock()}
	if err := m.passTime(ctx, r.now); err != nil {
		return nil, err
	}
	r.page = m.book.read(ctx)
	var errs [3]error
	r.sights, errs[0] = m.store.sights(ctx)
	r.recoveries, errs[1] = m.store.recoveries(ctx)
	r.incidents, errs[2] = m.store.openIncidents(ctx)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	r.setting = setting{
		now: r.now, sleeps: m.sleeps, lost: r.page.Lost, processes: m.opts.processes,
		claudeDir: m.opts.ClaudeDir, stale: m.opts.Stale,
	}
	switch {
	case r.now.Boot != "" && r.now.Up < resumeGrace:
		// Whoever starts agents when the machine starts has not done so yet, or only just.
		r.setting.grace, r.setting.graceDead = "the machine was started only just", true
	case r.now.Wall.Before(m.grace) && m.grace.Sub(r.now.Wall) <= resumeGrace: // later: the clock was set back since
		r.setting.grace = m.why
	}
	return r, nil
}

// passTime notices a sleep of the machine, or a clock that was set, since the last look.
func (m *Monitor) passTime(ctx context.Context, now Moment) error {
	asleep := Gap(m.last, now)
	unseen := time.Duration(0)
	if m.last.Boot != now.Boot || m.last.Wall.IsZero() { // the first look since the machine was started
		unseen = UnseenSleep(now)
	}
	m.last = now
	if asleep == 0 && unseen == 0 {
		return nil
	}
	m.why = fmt.Sprintf("the machine slept, or its clock was set, for %s", (asleep + unseen).Round(time.Second))
	m.grace = now.Wall.Add(resumeGrace)
	m.opts.Logger.Info("nobody is called silent for a while", slog.String("reason", m.why), slog.Time("until", m.grace))
	errs := []error{m.store.setFact(ctx, "grace", m.grace), m.store.setFact(ctx, "moment", now)}
	if asleep > 0 {
		s := Sleep{End: now.Wall, Length: asleep}
		m.sleeps = append(m.sleeps, s)
		errs = append(errs, m.store.addSleep(ctx, s))
	}
	return errors.Join(errs...)
}

// projects are those of the registry, and those that have vanished from it while they were running.
func (r *round) projects() []piv.Project {
	list := r.page.Registry.Projects
	r.summary.Projects = len(list)
	there := map[string]bool{}
	for _, p := range list {
		there[p.Key] = true
	}
	list = slices.Clone(list)
	for _, key := range slices.Sorted(maps.Keys(r.sights)) {
		if s := r.sights[key]; !there[key] && s.Entry.Status == piv.Running {
			list = append(list, s.Entry)
		}
	}
	return list
}

// known is what is known of a project besides the registry.
func (r *round) known(p piv.Project) known {
	k := known{sight: r.sights[p.Key], watched: len(r.incidents[p.Key]) > 0, vanished: true}
	for _, there := range r.page.Registry.Projects {
		if there.Key == p.Key {
			k.vanished = false
		}
	}
	list := r.recoveries[p.Key]
	for i := len(list) - 1; i >= 0 && k.launch == nil; i-- {
		switch list[i].Step {
		case started, completed, recovered:
			k.launch = &list[i]
		}
	}
	return k
}

// judge looks at one project and does what is to be done about it.
func (r *round) judge(ctx context.Context, p piv.Project) error {
	k := r.known(p)
	e, target := r.setting.gather(p, k)
	v := Classify(e, r.opts.policy())
	if err := r.remember(ctx, p, k, v); err != nil {
		return err
	}
	if v.Stall == noStall {
		return r.well(ctx, p, k, e, v)
	}
	r.summary.Stalled++
	a := Decide(v, p.ResumePhase(), r.history(p, v), r.opts.policy(), r.now.Wall)
	log := r.opts.Logger.With(slog.String("project", p.Name), slog.String("stall", string(v.Stall)), slog.String("rule", v.Rule))
	switch a.Kind {
	case Skip:
		log.Debug("left alone", slog.String("reason", a.Reason), slog.String("details", v.Details))
		return nil
	case Escalate:
		log.Warn("a human is told", slog.String("details", v.Details))
		return r.escalate(ctx, p, v, a, "none: a human is needed")
	}
	log.Warn("the orchestrator is restarted", slog.String("details", v.Details))
	return r.restart(ctx, p, v, a, target)
}

// history is what was done about a project before.
func (r *round) history(p piv.Project, v Verdict) History {
	h := History{Blind: r.sights[p.Key].Blind}
	for _, t := range r.recoveries[p.Key] {
		if t.Step == abandoned {
			continue
		}
		h.Attempts = append(h.Attempts, Attempt{At: t.At, Stall: t.Stall, Phase: t.Phase})
		h.Last = t.At
	}
	for _, i := range r.incidents[p.Key] {
		h.Open = h.Open || i.Stall == v.Stall && i.Phase == p.ResumePhase()
		h.Held = h.Held || i.Stall == Errored
	}
	return h
}

// remember keeps what later looks want to know of this one.
func (r *round) remember(ctx context.Context, p piv.Project, k known, v Verdict) error {
	if k.vanished && len(r.incidents[p.Key]) > 0 {
		return r.dropVanished(ctx, p) // a human has been told; there is nothing left to watch
	}
	s := k.sight
	if r.page.Lost == "" && !k.vanished {
		beaten := s.Entry.Heartbeat != p.Heartbeat
		s.Entry = p
		s.Identity = r.identify(p, s.Identity, beaten)
		if at, err := piv.ParseTime(p.Heartbeat); err != nil || !at.After(r.now.Wall) {
			s.Ahead, s.AheadSince = "", time.Time{}
		} else if s.Ahead != p.Heartbeat {
			s.Ahead, s.AheadSince = p.Heartbeat, r.now.Wall.Round(0)
		}
	}
	if v.Stall == Blind {
		s.Blind = min(s.Blind+1, blindFor)
	} else {
		s.Blind = 0
	}
	if s == k.sight {
		return nil
	}
	r.sights[p.Key] = s
	return r.store.setSight(ctx, p.Key, s)
}

// identify is the process that wrote the latest heartbeat, once and for all: later another one may get its number.
func (r *round) identify(p piv.Project, was process.Identity, beaten bool) process.Identity {
	at, err := piv.ParseTime(p.Heartbeat)
	if p.PID == 0 || err != nil || !beaten && was.PID == p.PID {
		return was
	}
	proc, err := r.opts.processes.Look(p.PID)
	began := r.now.Wall.Add(-proc.Age)
	if err != nil || r.now.Wall.Sub(at) > r.opts.Stale || began.After(at.Add(nearDeath)) {
		return was
	}
	return proc.Identity
}

func (r *round) dropVanished(ctx context.Context, p piv.Project) error {
	delete(r.sights, p.Key)
	for _, i := range r.incidents[p.Key] {
		if err := r.store.do(ctx, func(tx *sql.Tx) error { return closeIncident(ctx, tx, i.ID, r.now.Wall) }); err != nil {
			return err
		}
	}
	return r.store.dropSight(ctx, p.Key)
}

// mendRegistry deals with a registry that cannot be used: it is kept aside, a human is told once, and the last good copy
// takes its place.
func (r *round) mendRegistry(ctx context.Context) error {
	news := r.page.Lost != r.lost
	r.lost = r.page.Lost
	if r.page.Lost == "" {
		return errors.Join(r.saveRegistry(ctx), r.closeRegistryIncident(ctx))
	}
	if news {
		r.opts.Logger.Error("the registry cannot be used", slog.String("reason", r.page.Lost))
	}
	told := "the last good copy is used"
	if r.page.Broken != nil {
		aside, err := r.book.keepAside(r.page)
		if err != nil {
			return fmt.Errorf("keep the broken registry aside: %w", err)
		}
		told = "kept aside as " + aside
		if r.book.last != nil {
			told += "; the last good copy takes its place"
		}
	}
	r.opts.checkpoint("aside")
	v := Verdict{Rule: "R1", Class: "registry", Stall: Blind, Confidence: High, Details: r.page.Lost}
	if err := r.escalate(ctx, registryItself, v, Action{Kind: Escalate}, told); err != nil {
		return err
	}
	r.opts.checkpoint("told")
	if r.page.Broken == nil || r.book.last == nil {
		return nil
	}
	if err := r.book.restore(r.page); err != nil && !errors.Is(err, piv.ErrChanged) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// The heartbeats in the copy are old; everybody writes a new one into it soon.
	r.grace, r.why = r.now.Wall.Add(resumeGrace), "the registry was restored only just"
	r.setting.grace = r.why
	return r.store.setFact(ctx, "grace", r.grace)
}

// registryItself stands for the registry where a project is told of.
var registryItself = piv.Project{Name: "registry", Phase: piv.NoPhase, LastCompleted: piv.NoPhase}

// saveRegistry makes the registry the last good copy, unless it lacks somebody who was running: then a broken one may
// have been taken for a good one by another writer.
func (r *round) saveRegistry(ctx context.Context) error {
	there := map[string]bool{}
	for _, p := range r.page.Registry.Projects {
		there[p.Key] = true
	}
	for key, s := range r.sights {
		if s.Entry.Status == piv.Running && !there[key] {
			return nil
		}
	}
	return r.book.save(ctx)
}

// registryQuiet is how long a registry must be in order until its next breaking is news.
const registryQuiet = time.Hour

func (r *round) closeRegistryIncident(ctx context.Context) error {
	for _, i := range r.incidents[registryItself.Key] {
		if r.now.Wall.Sub(i.Opened) < registryQuiet {
			continue
		}
		if err := r.store.do(ctx, func(tx *sql.Tx) error { return closeIncident(ctx, tx, i.ID, r.now.Wall) }); err != nil {
			return err
		}
	}
	return nil
}

// tellStatuses lets the registry say of whom a human was told. Whoever beats again says "running" itself.
func (r *round) tellStatuses(ctx context.Context) error {
	if r.page.Lost != "" || ctx.Err() != nil {
		return nil
	}
	incidents, err := r.store.openIncidents(ctx)
	if err != nil {
		return err
	}
	var changes []piv.Change
	for _, p := range r.page.Registry.Projects {
		list := incidents[p.Key]
		if len(list) == 0 || p.Status != piv.Running {
			continue
		}
		status := statusAfter(list[len(list)-1].Stall)
		changes = append(changes, piv.Change{Key: p.Key, Status: &status})
	}
	return r.book.change(changes, r.now.Wall)
}
