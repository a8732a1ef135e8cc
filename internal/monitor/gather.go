package monitor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agentrun"
	"github.com/outlive-mcp/outlive/internal/diagnose"
	"github.com/outlive-mcp/outlive/internal/heartbeat"
	"github.com/outlive-mcp/outlive/internal/piv"
	"github.com/outlive-mcp/outlive/internal/process"
	"github.com/outlive-mcp/outlive/internal/vendors"
)

// gather collects the evidence of one declared agent. It only looks.
func (s *setting) gather(a agent, k known) (diagnose.Evidence, finding) {
	e := diagnose.Evidence{
		Status: "declared", Paused: a.Declared.Paused, Grace: s.grace, GraceDead: s.graceDead, BlindTicks: k.sight.Blind,
	}
	f := finding{phase: piv.NoPhase}
	if k.sight.Phase != 0 {
		f.phase = k.sight.Phase
	}
	g := &gathering{setting: s, agent: a, known: k, e: &e, f: &f}
	g.beat()
	g.process()
	g.run()
	g.sessions()
	g.hooks()
	g.manifest()
	g.cpu()
	g.conclude()
	return e, f
}

// gathering is the evidence of one agent while it is collected.
type gathering struct {
	*setting
	agent agent
	known known
	e     *diagnose.Evidence
	f     *finding

	began  time.Time // when the process was started; zero: unknown
	signs  []string  // of life
	report *agentrun.Report
	died   bool // the process that is known has ended, and no other is there
}

func (g *gathering) age(t time.Time) diagnose.Span {
	return diagnose.Span(max(Age(t, g.now.Wall, g.sleeps), 0))
}

// beat is the youngest sign that the agent itself has given.
func (g *gathering) beat() {
	if !g.agent.says("heartbeat") {
		return
	}
	if g.sources.broken[g.agent.Key] != "" {
		g.e.Missing = append(g.e.Missing, diagnose.FromBeat)
	}
	o, ok := g.sources.beats[g.agent.Key]
	if !ok {
		return
	}
	b := &g.e.Beat
	b.Has, b.State, b.Note, b.Next = true, diagnose.State(o.State), o.Note, diagnose.Span(o.Next)
	if o.Wall.After(g.now.Wall) {
		b.Age = diagnose.Span(g.now.Wall.Sub(o.Wall))
		if !g.known.sight.AheadSince.IsZero() {
			b.Seen = g.age(g.known.sight.AheadSince)
		}
	} else {
		b.Age = g.age(o.Wall)
	}
	if o.Exit != nil && (o.Kind == heartbeat.Success || o.Kind == heartbeat.Failure) {
		g.e.Exit = diagnose.Exit{Known: true, Code: *o.Exit}
	}
	if o.Phase != nil {
		g.f.phase = *o.Phase
	}
	g.e.Artefact = diagnose.Artefact{Expected: g.agent.Declared.Expect.Beat > 0}
	g.signs = append(g.signs, o.Wall.UTC().Format(time.RFC3339Nano))
}

// process finds out which process the agent is, and whether it lives.
func (g *gathering) process() {
	if !g.agent.says("process") {
		return
	}
	for _, id := range g.candidates() {
		if entry, ok := g.sources.entry(id.PID); ok && (id.Start == 0 || entry.Start == id.Start) {
			g.lives(entry)
			return
		}
	}
	was := g.known.sight.Identity
	if l := g.known.launch; l != nil && l.Process.PID == 0 && was == (process.Identity{}) {
		g.e.Process.Life, g.e.Process.Detail = diagnose.Unsure, "a start was interrupted, and nobody knows what became of it"
		return
	}
	if was == (process.Identity{}) {
		return
	}
	g.died = true
	p := &g.e.Process
	p.Life, p.Detail = diagnose.Dead, fmt.Sprintf("PID %d is dead", was.PID)
	if !g.known.sight.Gone.IsZero() {
		p.Gone = g.age(g.known.sight.Gone)
	}
	g.f.target = process.Target{Leaders: []process.Identity{was}, LeftBefore: g.now.Wall, Runs: g.runsOfOurs(), Grace: g.agent.Declared.Budget.KillGrace}
}

func (g *gathering) lives(entry process.Entry) {
	p := &g.e.Process
	g.began = g.now.Wall.Add(-entry.Age)
	p.Life, p.Detail, p.Age = diagnose.Alive, fmt.Sprintf("PID %d is alive", entry.PID), g.age(g.began)
	p.AfterBeat = !g.e.Beat.Has || g.e.Beat.Age > p.Age
	g.e.Artefact.Expected = g.e.Artefact.Expected || g.agent.Declared.Expect.Beat > 0
	g.e.Artefact.Seen = !p.AfterBeat
	g.f.process = entry.Identity
	g.f.target = process.Target{Leaders: []process.Identity{entry.Identity}, Runs: g.runsOfOurs(), Grace: g.agent.Declared.Budget.KillGrace}
}

// runsOfOurs are the tokens of our starts of the agent.
func (g *gathering) runsOfOurs() []string {
	if g.known.launch == nil {
		return nil
	}
	return []string{g.known.launch.Run}
}

// candidates are the processes that could be the agent's, the surest first.
func (g *gathering) candidates() []process.Identity {
	var list []process.Identity
	if r, ok := g.sources.runs[g.agent.Key]; ok {
		list = append(list, process.Identity{PID: r.PID, Start: r.Start})
	}
	if l := g.known.launch; l != nil && l.Process.PID != 0 && g.sources.runs[g.agent.Key].PID == 0 {
		list = append(list, l.Process)
	}
	if pid := g.pidFile(); pid != 0 {
		list = append(list, process.Identity{PID: pid})
	}
	if o, ok := g.sources.beats[g.agent.Key]; ok && o.PID != 0 && o.Start != 0 {
		list = append(list, process.Identity{PID: o.PID, Start: o.Start})
	}
	if g.known.sight.Identity != (process.Identity{}) {
		list = append(list, g.known.sight.Identity)
	}
	if kind := vendorKind(g.agent.Kind); kind != "" && g.agent.ownsDirectory() {
		list = append(list, g.running(kind)...)
	}
	return list
}

// running are the processes of the agent's CLI in its directory, the oldest first: what they start may be one, too.
func (g *gathering) running(kind vendors.Kind) []process.Identity {
	var found []process.Entry
	for id, p := range g.sources.programs {
		if entry, ok := g.sources.entry(id.PID); ok && p.kind == kind && within(p.dir, g.agent.Path) {
			found = append(found, entry)
		}
	}
	slices.SortFunc(found, func(a, b process.Entry) int { return int(b.Age/time.Millisecond - a.Age/time.Millisecond) })
	var list []process.Identity
	for _, e := range found {
		list = append(list, e.Identity)
	}
	return list
}

// pidFile is the number in the declared file; 0 when there is none.
func (g *gathering) pidFile() int {
	path := g.agent.Declared.Match.PIDFile
	if path == "" {
		return 0
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(g.agent.Path, path)
	}
	text, err := piv.ReadFile(path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			g.e.Missing = append(g.e.Missing, diagnose.FromProcess)
		}
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	st, statErr := os.Stat(path)
	entry, ok := g.sources.entry(pid)
	if err != nil || statErr != nil || !ok || g.now.Wall.Add(-entry.Age).After(st.ModTime().Add(toolSlack)) {
		return 0 // whoever is younger than the file did not write it
	}
	return pid
}

// run is what the wrapper around the agent has seen.
func (g *gathering) run() {
	r, ok := g.sources.runs[g.agent.Key]
	if !ok || g.e.Process.Life == diagnose.Alive && r.PID != g.f.process.PID {
		return
	}
	g.report = &r
	if r.Exit != nil {
		g.e.Exit = diagnose.Exit{Known: true, Code: r.Exit.Code, Signal: r.Exit.Signal}
		if g.e.Process.Life != diagnose.Alive {
			g.died = true
			g.e.Process.Life, g.e.Process.Detail = diagnose.Dead, fmt.Sprintf("PID %d has ended", r.PID)
			g.e.Process.Gone = g.age(r.Exit.At)
		}
	}
	if g.agent.says("output") && !r.OutputAt.IsZero() {
		g.e.Output = diagnose.Output{Known: true, Age: g.age(r.OutputAt)}
	}
	if r.Title != "" {
		g.e.Title = diagnose.Title{Text: r.Title, Status: diagnose.Status(r.TitleState), Age: g.age(r.TitleAt)}
	}
	if g.e.Process.Life == diagnose.Alive && !g.sources.alive(process.Identity{PID: r.Wrapper.PID, Start: r.Wrapper.Start}) {
		g.e.Process.Orphaned = true
	}
	g.f.body = strings.Join(r.LastLines, "\n")
	if r.Session != "" {
		g.f.session = r.Session
	}
}

// sessions are those of the agent's CLI that the living process runs, or the dead one has run.
func (g *gathering) sessions() {
	kind := vendorKind(g.agent.Kind)
	if kind == "" || !g.agent.says("transcript") {
		return
	}
	g.e.Artefact.Expected = true
	if g.sources.fault != nil {
		g.e.Missing = append(g.e.Missing, diagnose.FromSessions)
	}
	for _, v := range g.sources.sessions {
		if v.Kind != kind || !g.ours(v) {
			continue
		}
		g.signs = append(g.signs, fmt.Sprintf("%s/%d/%s", v.ID, v.Turn.Sequence, v.StatusAt.UTC().Format(time.RFC3339Nano)))
		if !v.Subagent && (g.f.session == "" || v.PID == g.f.process.PID && v.PID != 0) {
			g.f.session = v.ID
		}
		if g.began.IsZero() || v.Turn.LastAt.After(g.began) || v.StatusAt.After(g.began) || v.PID == g.f.process.PID && v.PID != 0 {
			g.e.Artefact.Seen = true
		}
		if g.died {
			continue // what it showed last is in the sight
		}
		if !v.Turn.OpenAt.IsZero() && v.Turn.Open == vendors.Tool {
			g.f.tool = v.Turn.OpenAt
		}
		g.e.Sessions = append(g.e.Sessions, g.session(v))
	}
}

// ours reports whether a session is the agent's: by its id, by its process, or by its directory and its age.
func (g *gathering) ours(v vendors.Session) bool {
	if id := g.agent.Declared.Match.Session; id != "" && id != "auto" {
		return v.ID == id
	}
	if !g.agent.ownsDirectory() || !within(v.Dir, g.agent.Path) {
		return false
	}
	if v.PID == 0 { // the files do not say whose it is: it was written while the process has lived
		return g.began.IsZero() || v.Turn.LastAt.After(g.began.Add(-toolSlack))
	}
	if g.f.process == (process.Identity{}) {
		return g.known.sight.Identity.PID == v.PID
	}
	if v.PID == g.f.process.PID {
		return v.Start == 0 || v.Start == g.f.process.Start
	}
	return slices.ContainsFunc(g.sources.descendants(g.f.process), func(e process.Entry) bool { // behind npx or a wrapper
		return e.PID == v.PID && (v.Start == 0 || v.Start == e.Start)
	})
}

// session is a vendor's session as evidence.
func (g *gathering) session(v vendors.Session) diagnose.Session {
	t := v.Turn
	d := diagnose.Session{
		Kind: string(v.Kind), ID: v.ID, Status: diagnose.Status(v.Status), WaitingFor: diagnose.Wait(v.WaitingFor),
		Open: diagnose.Open(t.Open), OpenText: t.ToolInput, Tool: t.Tool, Ended: t.Ended, EndedAsking: t.EndedAsking, LastText: t.LastText,
		Repeats: diagnose.Repeats{SameCall: t.Repeats.SameCall, SameError: t.Repeats.SameError, Alternating: t.Repeats.Alternating},
		Tokens:  t.Tokens, CostUSD: t.CostUSD, Turns: t.Turns,
	}
	last := t.LastAt
	if v.SubagentAt.After(last) {
		last = v.SubagentAt
	}
	for _, x := range []struct {
		at time.Time
		to *diagnose.Span
	}{{v.StatusAt, &d.StatusAge}, {t.OpenAt, &d.OpenAge}, {last, &d.LastAge}, {t.ProgressAt, &d.ProgressAge}} {
		if !x.at.IsZero() {
			*x.to = g.age(x.at)
		}
	}
	d.ProgressKnown = !t.ProgressAt.IsZero()
	if d.Open == diagnose.OpenTool && v.SubagentAt.After(t.OpenAt) {
		d.OpenAge = g.age(v.SubagentAt) // its subagents are the tool
	}
	if x := t.Error; x.Kind != vendors.NoFailure {
		d.Error = diagnose.SessionError{Kind: diagnose.ErrorKind(x.Kind), Status: x.Status, Text: x.Text, Attempt: x.Attempt, Max: x.Max}
		if !x.Until.IsZero() {
			d.Error.ResetKnown, d.Error.ResetIn = true, diagnose.Span(x.Until.Sub(g.now.Wall))
		}
	}
	return d
}

// hooks are requests for permissions: those that a hook holds for us, and those at the agent's own dialog.
func (g *gathering) hooks() {
	if !g.agent.says("hooks") || g.e.Process.Life == diagnose.Dead {
		return
	}
	for _, q := range g.sources.requests {
		mine := q.PID != 0 && (q.PID == g.f.process.PID || slices.ContainsFunc(g.sources.descendants(g.f.process), func(e process.Entry) bool { return e.PID == q.PID }))
		if mine || q.PID == 0 && g.agent.ownsDirectory() && within(q.Dir, g.agent.Path) {
			g.e.Hooks = append(g.e.Hooks, diagnose.Request{Tool: q.Tool, Text: q.Command, Age: g.age(q.Asked)})
			g.f.request, g.f.nonce, g.f.body = q.ID, q.Nonce, q.Tool+": "+q.Command
		}
	}
	asks := g.known.sight.Asks
	if len(g.e.Hooks) == 0 && !asks.At.IsZero() && !g.wroteSince(asks.At) {
		g.e.Hooks = append(g.e.Hooks, diagnose.Request{Tool: asks.Tool, Text: asks.Text, Age: g.age(asks.At)})
		g.f.body = asks.Tool + ": " + asks.Text
	}
}

// wroteSince reports whether a session of the agent has gone on since.
func (g *gathering) wroteSince(t time.Time) bool {
	for _, s := range g.e.Sessions {
		if s.LastAge < g.age(t.Add(toolSlack)) || s.Status == diagnose.BusyStatus && s.StatusAge < g.age(t.Add(toolSlack)) {
			return true
		}
	}
	return false
}

// manifest is S4's, where the directory has one.
func (g *gathering) manifest() {
	if g.agent.Path == "" || g.agent.Kind != "piv" && g.agent.Declared.Expect.Done.Manifest == "" {
		return
	}
	if phase := g.readManifest(g.e, g.agent.Path); phase != piv.NoPhase {
		g.f.phase = phase
	}
}

// cpu is what the descendants have used since the last look.
func (g *gathering) cpu() {
	if m := g.known.sight.CPU; m.Known && g.e.Process.Life == diagnose.Alive {
		g.e.CPU = diagnose.CPU{Known: true, Share: m.Share}
	}
}

// conclude says whether it is watched at all: an agent that was never seen is not missed, and neither is one that ended
// while it had nothing to do, as people end theirs.
func (g *gathering) conclude() {
	s := g.known.sight
	seen := g.e.Beat.Has || g.e.Process.Life != diagnose.Unknown || len(g.e.Sessions) > 0 || g.report != nil
	failed := g.e.Exit.Known && (g.e.Exit.Code != 0 || g.e.Exit.Signal != "")
	switch {
	case !seen:
		g.e.Status = "declared, and not seen yet"
	case s.Stopped && g.e.Process.Life != diagnose.Alive:
		g.e.Status = "stopped by a person"
	case g.e.Process.Life == diagnose.Dead && s.AtRest && !failed && len(g.agent.Declared.Start.Cmd) == 0:
		g.e.Status = "ended at its prompt"
	default:
		g.e.Status, g.e.Watched = "watched", true
	}
	slices.Sort(g.signs)
	g.f.signs = strings.Join(g.signs, " ")
}
