package monitor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// rememberProject keeps who wrote the latest heartbeat, and since when one is of the future.
func (st *setting) rememberProject(c *examined, s *sight) {
	p := c.Entry
	beaten := s.Entry.Heartbeat != p.Heartbeat
	s.Entry = p
	s.Identity = st.identify(p, s.Identity, beaten)
	s.Stopped = s.Stopped && !beaten && c.evidence.Process.Life != diagnose.Alive
	if at, err := piv.ParseTime(p.Heartbeat); err != nil || !at.After(st.now.Wall) {
		s.Ahead, s.AheadSince = "", time.Time{}
	} else if s.Ahead != p.Heartbeat {
		s.Ahead, s.AheadSince = p.Heartbeat, st.now.Wall.Round(0)
	}
}

// identify is the process that wrote the latest heartbeat, once and for all: later another one may get its number.
func (st *setting) identify(p piv.Project, was process.Identity, beaten bool) process.Identity {
	at, err := piv.ParseTime(p.Heartbeat)
	if p.PID == 0 || err != nil || !beaten && was.PID == p.PID {
		return was
	}
	proc, err := st.processes.Look(p.PID)
	if err != nil || st.now.Wall.Add(-proc.Age).After(at.Add(nearDeath)) {
		return was
	}
	return proc.Identity
}

// sinceJitter is how far two answers to "since when" may lie apart and still mean the same moment.
const sinceJitter = time.Minute

// rememberTrouble keeps since when something is wrong, so that it stays the same while it goes on.
func (st *setting) rememberTrouble(c *examined, s *sight) {
	if c.verdict.Well() && c.verdict.Class != diagnose.APIBackoff {
		s.Trouble = trouble{}
		return
	}
	t := trouble{Class: string(c.verdict.Class), Since: st.now.Wall.Add(-time.Duration(c.verdict.Since)).Round(0)}
	if c.launch != nil {
		t.Start = c.launch.ID
	}
	if c.verdict.Hold > 0 {
		t.Until = st.now.Wall.Add(time.Duration(c.verdict.Hold)).Round(0)
	}
	if old := s.Trouble; old.Class == t.Class && old.Start == t.Start {
		t.Since, t.Spared = old.Since, old.Spared
		if d := t.Until.Sub(old.Until); d.Abs() < sinceJitter {
			t.Until = old.Until
		}
	}
	s.Trouble = t
}

// rememberAgent keeps what the next look at a declared agent wants to know of this one.
func (st *setting) rememberAgent(c *examined, s *sight) {
	if !s.Declared {
		s.Since = st.now.Wall.Round(0)
	}
	s.Declared, s.Entry = true, c.Entry
	s.Phase = c.body.phase
	rememberWork(c, s)
	if c.body.session != "" {
		s.Session = c.body.session
	}
	switch c.evidence.Process.Life {
	case diagnose.Alive:
		if c.body.stranger != "" {
			break // its end is no end of the agent
		}
		if s.Identity != c.body.process {
			s.Identity, s.Alive, s.Left = c.body.process, st.now.Wall.Round(0), false
		}
		s.Gone, s.GoneOf, s.Stopped = time.Time{}, process.Identity{}, false
		if c.verdict.Class != diagnose.Grace || c.underWay() { // a grace says nothing of an agent at its prompt
			s.RestSince = time.Time{}
		}
		if c.verdict.Class == diagnose.Idle {
			s.RestSince = st.now.Wall.Add(-time.Duration(c.verdict.Since)).Round(0)
		}
		s.CPU = s.CPU.next(st.sources.helpers(c.body.process), st.now)
	case diagnose.Dead:
		if s.GoneOf != c.body.dead {
			s.Gone, s.GoneOf = st.now.Wall.Round(0), c.body.dead
		}
	}
	if !c.evidence.Beat.Has || c.evidence.Beat.Age >= 0 {
		s.Ahead, s.AheadSince = "", time.Time{}
	} else if beat := st.sources.beats[c.Key].Wall.UTC().Format(time.RFC3339Nano); s.Ahead != beat {
		s.Ahead, s.AheadSince = beat, st.now.Wall.Round(0)
	}
	if !s.Asks.At.IsZero() && len(c.evidence.Hooks) == 0 {
		s.Asks = hookState{} // it goes on, or it is gone
	}
}

// restAfter is how long an agent must have had nothing to do until it is at rest: one that runs without a terminal ends a
// moment after its turn.
const restAfter = 3 * time.Second

// cpuWindow is the least time between two readings of what the descendants use: the kernel counts in hundredths of a
// second.
const cpuWindow = 10 * time.Second

// next is the reading after m. One that has only just begun is work by itself; one that has ended takes its time with it,
// and then nothing is known of the window.
func (m cpuMark) next(descendants []process.Entry, now Moment) cpuMark {
	elapsed := now.Mono - m.Mono
	if m.Mono != 0 && elapsed >= 0 && elapsed < cpuWindow {
		return m
	}
	n := cpuMark{Mono: now.Mono, Known: m.Mono != 0 && elapsed > 0, Worked: m.Worked}
	for _, e := range descendants {
		n.Used += e.CPU
		n.Starts = n.Starts || n.Known && e.Age <= elapsed
	}
	n.Known = n.Known && (n.Starts || n.Used >= m.Used)
	if !n.Known && m.Known && !m.Kept { // its helpers have only just ended: what they did last says more than nothing
		n.Known, n.Kept, n.Share, n.Starts = true, true, m.Share, m.Starts
		return n
	}
	if n.Known && n.Used >= m.Used {
		n.Share = float64(int(float64(n.Used-m.Used)/float64(elapsed)*1000)) / 1000
	}
	if (diagnose.CPU{Known: n.Known, Share: n.Share, Starts: n.Starts}).Works() {
		n.Worked = n.Mono
	}
	return n
}

// Events of hooks that say that an agent waits at its own dialog, and those that say that it goes on.
var (
	asking = []string{"PermissionRequest"}
	// leaving are the reasons of SessionEnd that only a person gives (Claude Code's documentation of hooks).
	leaving = []string{"prompt_input_exit", "logout", "exit"}
	going   = []string{"PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "StopFailure", "SessionStart", "SessionEnd", "PermissionDenied", "BeforeAgent", "AfterAgent", "AfterTool"}
)

// questions are tools that ask the human: their hooks call that a permission, too (Claude Code 2.1.330, measured).
var questions = []string{"AskUserQuestion", "ExitPlanMode"}

// hear takes what hooks have left since the last look.
func (r *round) hear(ctx context.Context) error {
	if !r.page.declared() {
		return nil
	}
	return hooks.Drain(hooks.Dir(r.opts.Home), func(events []hooks.Event) error {
		var changed []string
		for _, e := range events {
			if a := r.sources.agentOf(e, r.page.Agents, r.sights.all); a != nil && r.sights.hear(a.Key, e) {
				changed = append(changed, a.Key)
			}
		}
		return r.store.setSights(ctx, changed, r.sights.all)
	})
}

// hear takes what one hook has left, and reports whether that is news.
func (ss *sightings) hear(name string, e hooks.Event) bool {
	s := ss.all[name]
	switch {
	case slices.Contains(questions, e.Tool): // the transcript shows what is asked
		return false
	case slices.Contains(asking, e.Name):
		s.Asks = hookState{Tool: e.Tool, Text: e.Input, Unasked: e.Unasked, At: e.Time.Round(0)}
		if s.Asks.Text == "" {
			s.Asks.Text = e.Text
		}
	case slices.Contains(going, e.Name):
		s.Asks = hookState{}
		if e.Name == "UserPromptSubmit" && e.Subagent == "" {
			s.TypedAt = e.Time.Round(0)
		}
		s.Left = e.Name == "SessionEnd" && slices.Contains(leaving, e.Reason)
	}
	was := ss.all[name]
	ss.all[name] = s
	return s != was
}

// agentOf is the agent that a hook was called by: by its session, or its process, or else by its directory, the
// deepest first. Codex' hooks run below a daemon of all its sessions: there the process says little.
func (s *sources) agentOf(e hooks.Event, agents []agent, sights map[string]sight) *agent {
	var byProcess, byPlace *agent
	for i := range agents {
		a := &agents[i]
		was := sights[a.Key]
		mine := e.PID != 0 && s.below(e.PID, was.Identity)
		if kind := vendorKind(a.Kind); string(kind) != e.Vendor && (kind != "" || !mine) {
			continue // another vendor's, unless it is only called so by whoever runs it
		}
		switch {
		case was.Session != "" && was.Session == e.Session:
			return a
		case mine:
			byProcess = a
		case a.ownsDirectory() && s.within(e.Dir, a.Path) && (byPlace == nil || len(a.Path) > len(byPlace.Path)):
			byPlace = a
		}
	}
	if byProcess != nil {
		return byProcess
	}
	return byPlace
}

// dropRemoved ends what there is of agents that their owner has taken out of a registry of version 2.
func (r *round) dropRemoved(ctx context.Context) error {
	if !r.page.declared() {
		return nil
	}
	there := map[string]bool{registryKey: true}
	for _, a := range r.page.Agents {
		there[a.Key] = true
	}
	var errs []error
	for _, i := range r.incidents.list {
		if !there[i.Key.Agent] && i.Key.Class != incident.Mass && i.State != incident.Resolved {
			errs = append(errs, r.incidents.tell(ctx, r.incidents.agentOf(i), i, incident.Gone{Why: "it is no longer in the registry"}, nil))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.sights.all)) {
		if !there[key] && r.sights.all[key].Declared {
			errs = append(errs, r.sights.drop(ctx, key))
		}
	}
	return errors.Join(errs...)
}
