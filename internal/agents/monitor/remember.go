package monitor

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// rememberProject stores which process wrote the latest heartbeat, and since when one is of the future.
func (st *setting) rememberProject(c *examined, s *agentState) {
	p := c.Project
	at, err := piv.ParseTime(p.Heartbeat)
	beaten := s.Entry.Heartbeat != p.Heartbeat
	s.Entry = p
	if p.PID != 0 && err == nil && (beaten || s.Identity.PID != p.PID) { // once, since its number may be given to another process later
		if proc, errLook := st.sources.procs.Look(p.PID); errLook == nil && !st.now.Wall.Add(-proc.Age).After(at.Add(nearDeath)) {
			s.Identity = proc.Identity
		}
	}
	s.Stopped = s.Stopped && !beaten && c.evidence.Process.Life != diagnose.Alive
	if err != nil || !at.After(st.now.Wall) {
		s.Ahead, s.AheadSince = "", time.Time{}
	} else if s.Ahead != p.Heartbeat {
		s.Ahead, s.AheadSince = p.Heartbeat, st.now.Wall.Round(0)
	}
}

// sinceJitter is how far two computed start times may differ and still mean the same moment.
const sinceJitter = time.Minute

// rememberTrouble stores since when something is wrong, so that the time stays the same while it goes on.
func (st *setting) rememberTrouble(c *examined, s *agentState) {
	if c.diagnosis.Well() && c.diagnosis.Class != diagnose.APIBackoff {
		s.Trouble = trouble{}
		return
	}
	t := trouble{Class: string(c.diagnosis.Class), Since: cmp.Or(st.seenSince(c.diagnosis), st.now.Wall.Round(0))}
	if c.launch != nil {
		t.Start = c.launch.ID
	}
	if c.diagnosis.Hold != 0 { // negative: it should have ended
		t.Until = st.now.Wall.Add(time.Duration(c.diagnosis.Hold)).Round(0)
	}
	if old := s.Trouble; old.Class == t.Class && old.Start == t.Start {
		t.Since, t.Spared = old.Since, old.Spared
		if d := t.Until.Sub(old.Until); d.Abs() < sinceJitter {
			t.Until = old.Until
		}
	}
	s.Trouble = t
}

// seenSince is when the agent began to stand as it does, by what is seen of it now. Zero: that does not say.
func (st *setting) seenSince(v diagnose.Diagnosis) time.Time {
	if v.Since <= 0 || v.Since == diagnose.Never {
		return time.Time{}
	}
	return st.now.Wall.Add(-time.Duration(v.Since)).Round(0)
}

// occupation is what an agent in a class without trouble does. Those that work are one: an agent that beats may have a session, too.
func occupation(v diagnose.Diagnosis) string {
	switch v.Class {
	case diagnose.Healthy, diagnose.AtWork, diagnose.Unobserved:
		return "works"
	case diagnose.Idle:
		return "rests"
	}
	return ""
}

// rememberSince finds since when the agent stands as it does. A beat or a record of a session says only that it still does: the
// first one counts.
func (st *setting) rememberSince(c *examined, s *agentState) {
	v, was, e := c.diagnosis, c.known.agentState, c.evidence
	c.since = st.seenSince(v)
	is := wellness{Does: occupation(v)}
	switch {
	case s.Trouble.Class != "":
		c.since, s.Well = s.Trouble.Since, wellness{}
		return
	case v.Class == diagnose.Grace:
		return // it says nothing about the agent
	case is.Does == "":
		s.Well = wellness{}
		return
	}
	id := c.subject.process
	another := id != (process.Identity{}) && was.Identity != (process.Identity{}) && id != was.Identity
	rests := v.Class == diagnose.Idle && v.Tier != diagnose.Hook && len(e.Sessions) > 0 // its files say when it came to rest
	switch {
	case was.Well.Does == is.Does && !another && !rests:
		c.since = was.Well.Since
	case was.Well.Does == "" && was.Trouble.Class == "" && (v.Class == diagnose.Healthy || v.Class == diagnose.Unobserved) && e.Process.Life == diagnose.Alive && e.Process.Age > v.Since:
		c.since = st.now.Wall.Add(-time.Duration(e.Process.Age)).Round(0) // nothing else is known of it since its start
	}
	is.Since = cmp.Or(c.since, st.now.Wall.Round(0))
	s.Well = is
}

// rememberAgent stores what the next look at a declared agent needs.
func (st *setting) rememberAgent(c *examined, s *agentState) {
	if !s.Declared {
		s.Since = st.now.Wall.Round(0)
	}
	s.Declared, s.Entry = true, c.Project
	s.Phase = c.subject.phase
	rememberWork(c, s)
	s.TasksGone, s.Nested = c.subject.tasksGone, c.subject.nested
	if c.subject.session != "" {
		s.Session = c.subject.session
	}
	switch c.evidence.Process.Life {
	case diagnose.Alive:
		if c.subject.stranger != "" {
			break // the end of this process is not the agent's end
		}
		if s.Identity != c.subject.process {
			s.Identity, s.Alive, s.Left = c.subject.process, st.now.Wall.Round(0), false
		}
		s.Gone, s.GoneOf, s.Shown, s.Stopped = time.Time{}, process.Identity{}, lastShown{}, false
		if !c.evidence.Process.Bare {
			s.Moved = c.subject.moved
		}
		switch {
		case c.diagnosis.Class == diagnose.Idle:
			s.RestSince = s.Well.Since
		case c.diagnosis.Class != diagnose.Grace || c.underWay() || !c.hasAnswered():
			s.RestSince = time.Time{}
		case s.RestSince.IsZero(): // a grace does not say that it is idle
			s.RestSince = st.now.Wall.Round(0)
		}
		s.CPU = s.CPU.next(st.sources.helpers(c.subject.process), st.now)
	case diagnose.Dead:
		if s.GoneOf != c.subject.dead {
			s.Gone, s.GoneOf = st.now.Wall.Round(0), c.subject.dead
		}
		s.Shown = c.subject.shown
	}
	if !c.evidence.Beat.Has || c.evidence.Beat.Age >= 0 {
		s.Ahead, s.AheadSince = "", time.Time{}
	} else if beat := st.sources.beats[c.Key].Wall.UTC().Format(time.RFC3339Nano); s.Ahead != beat {
		s.Ahead, s.AheadSince = beat, st.now.Wall.Round(0)
	}
	if !s.Asks.At.IsZero() && len(c.evidence.Hooks) == 0 {
		s.Asks = hookState{} // it continues, or has ended
	}
}

// restAfter is how long an agent must be idle to be at rest: a headless one exits a moment after its turn.
const restAfter = 3 * time.Second

// cpuWindow is the shortest time between two CPU readings of the descendants, since the kernel counts in hundredths of a
// second.
const cpuWindow = 10 * time.Second

// next is the reading after m. A new descendant counts as work; if one has ended, its CPU time is lost and the window
// says nothing. Neither does one in which the system does not tell the CPU time, unless a process was started.
func (m cpuMark) next(descendants []process.Process, now Clocks) cpuMark {
	elapsed := now.Mono - m.Mono
	if m.Mono != 0 && elapsed >= 0 && elapsed < cpuWindow {
		return m
	}
	n := cpuMark{Mono: now.Mono, Known: m.Mono != 0 && elapsed > 0, Worked: m.Worked}
	untold := false
	for _, e := range descendants {
		untold = untold || e.CPU == process.Untold
		n.Used += e.CPU
		n.Starts = n.Starts || n.Known && e.Age <= elapsed
	}
	n.Known = n.Known && (n.Starts || !untold && n.Used >= m.Used)
	if !n.Known && m.Known && !m.Kept { // its helpers have just ended: the previous window says more than nothing
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

// Hook events that say that an agent waits at its own dialog, and those that say that it continues.
var (
	asking = []string{"PermissionRequest"}
	// leaving are the SessionEnd reasons that only a person causes (Claude Code's hooks documentation).
	leaving = []string{"prompt_input_exit", "logout", "exit"}
	going   = []string{"PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop", "StopFailure", "SessionStart", "SessionEnd", "PermissionDenied", "BeforeAgent", "AfterAgent", "AfterTool"}
)

// questions are tools that ask the human: their hooks report a permission request as well (Claude Code 2.1.330,
// measured).
var questions = []string{"AskUserQuestion", "ExitPlanMode"}

// hear reads the hook events since the last look.
func (r *round) hear(ctx context.Context) error {
	if !r.snapshot.declared() {
		return nil
	}
	return hooks.Drain(hooks.Dir(r.opts.Home), func(events []hooks.Event, dropped bool) error {
		if dropped {
			r.unhear()
		}
		for _, e := range events {
			if a := r.sources.agentOf(e, r.snapshot.Agents, r.agentStates.all); a != nil {
				r.agentStates.hear(a.Key, e)
			}
		}
		return r.agentStates.save(ctx)
	})
}

// unhear records that events were dropped: each agent with hooks may have asked for a permission with one of them.
func (r *round) unhear() {
	for _, a := range r.snapshot.Agents {
		if a.says("hooks") {
			s := r.agentStates.all[a.Key]
			s.Unheard = r.now.Wall.Round(0)
			r.agentStates.note(a.Key, s)
		}
	}
}

// hear takes one hook event.
func (ss *stateCache) hear(name string, e hooks.Event) {
	was := ss.all[name]
	s := was
	s.Unheard = time.Time{}
	switch {
	case slices.Contains(questions, e.Tool): // the transcript shows what is asked
		return
	case slices.Contains(asking, e.Name):
		s.Asks = hookState{Tool: e.Tool, Text: e.Input, Unasked: e.Unasked, At: e.Time.Round(0)}
		s.Asks.Text = cmp.Or(s.Asks.Text, e.Text)
	case slices.Contains(going, e.Name):
		s.Asks = hookState{}
		if e.Name == "UserPromptSubmit" && e.Subagent == "" {
			s.TypedAt = e.Time.Round(0)
		}
		s.Left = e.Name == "SessionEnd" && slices.Contains(leaving, e.Reason) && (s.Session == "" || s.Session == e.Session) // not that of another one there
	}
	if s != was {
		ss.note(name, s)
	}
}

// agentOf is the agent of a hook event: by session, by process, or else by directory, the deepest first. Codex' hooks
// run below a daemon shared by all sessions, where the process says little. Those of a CLI that an agent has started are
// nobody's.
func (s *sources) agentOf(e hooks.Event, agents []agent, agentStates map[string]agentState) *agent {
	var byProcess, byPlace *agent
	nested := false
	for i := range agents {
		a := &agents[i]
		was := agentStates[a.Key]
		mine := e.PID != 0 && s.below(e.PID, was.Identity)
		if kind := vendorKind(a.Kind); string(kind) != e.Vendor && (kind != "" || !mine) {
			nested = nested || mine
			continue // another vendor's, unless the name is only an alias
		}
		switch {
		case was.Session != "" && was.Session == e.Session:
			return a
		case s.overNested(e, was.Identity):
		case mine && s.nested(e.PID, agentcli.Kind(e.Vendor), was.Identity):
			nested = true
		case mine:
			byProcess = a
		case a.ownsDirectory() && s.within(e.Dir, a.Path) && (byPlace == nil || len(a.Path) > len(byPlace.Path)):
			byPlace = a
		}
	}
	if byProcess != nil || nested {
		return byProcess
	}
	return byPlace
}

// overNested reports whether a hook event comes from an ended process while the agent lives. A CLI that it had started has
// ended; the end of a session is an exception, since its process may end with it.
func (s *sources) overNested(e hooks.Event, agent process.Identity) bool {
	_, lives := s.entry(agent)
	_, there := s.table.Entry(e.PID)
	return lives && e.PID != 0 && !there && e.Name != "SessionEnd"
}

// dropRemoved closes the state of agents that were removed from a registry of version 2.
func (r *round) dropRemoved(ctx context.Context) error {
	if !r.snapshot.declared() {
		return nil
	}
	var errs []error
	for _, i := range r.incidents.list {
		_, _, server := i.Key.ServerAndUser()
		_, there := r.snapshot.agent(i.Key.Agent)
		if ofAgent := !server && i.Facts.Case == "" && i.Key.Class != incident.Mass; ofAgent && i.Key.Agent != registryKey && !there && i.State != incident.Resolved {
			errs = append(errs, r.incidents.tell(ctx, r.incidents.agentOf(i), i, incident.Gone{Why: "it is no longer in the registry"}, nil))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.agentStates.all)) {
		if _, there := r.snapshot.agent(key); !there && r.agentStates.all[key].Declared {
			errs = append(errs, r.agentStates.drop(ctx, key))
		}
	}
	return errors.Join(errs...)
}
