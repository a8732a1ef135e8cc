package monitor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// presentRun is the report of the wrapper, unless it is of a run before our last start.
func (g *gathering) presentRun() *agentrun.Report {
	r, ok := g.sources.runs[g.agent.Key]
	if l := g.known.launch; !ok || l != nil && r.StartedAt.Before(l.StartedAt) {
		return nil
	}
	return &r
}

func identityOfRun(r *agentrun.Report) process.Identity {
	return process.Identity{PID: r.PID, Start: r.Start, Boot: r.Boot}
}

// process finds the agent's process and whether it lives.
func (g *gathering) process() {
	if !g.agent.says("process") {
		return
	}
	for _, find := range []func() []process.Identity{g.candidates, g.running} {
		for _, id := range find() {
			if entry, ok := g.sources.entry(id); ok {
				g.lives(entry)
				return
			}
		}
	}
	if g.stranger.PID != 0 {
		g.lookAtStranger()
		return
	}
	was, begun := g.lastProcess()
	p := &g.e.Process
	if was.PID == 0 {
		if begun {
			p.Life, p.Detail = diagnose.Unsure, "a start was interrupted, and its outcome is not known"
			g.f.target = g.targetOf(was)
		}
		return
	}
	// The process table may be incomplete, so a death is confirmed by looking at the process itself.
	switch proc, err := g.sources.procs.Look(was.PID); {
	case err == nil && proc.Identity == was:
		g.miss(diagnose.FromProcess, "the table of processes lacks one that lives")
		g.lives(process.Process{Identity: was, Age: proc.Age})
		return
	case err != nil && !errors.Is(err, os.ErrProcessDone):
		p.Life, p.Detail = diagnose.Unsure, fmt.Sprintf("PID %d cannot be looked at: %v", was.PID, err)
		return
	}
	g.died = true
	p.Life, p.Detail = diagnose.Dead, fmt.Sprintf("PID %d is dead", was.PID)
	if s := g.known.agentState; !s.Gone.IsZero() && s.GoneOf == was {
		p.Gone = g.age(s.Gone)
	}
	g.f.dead, g.f.target = was, g.targetOf(was)
	g.askWrapper()
}

// exitTakes is how long a living wrapper may take to report how its agent has ended.
const exitTakes = 10 * time.Second

// askWrapper asks the wrapper of a process that has ended again how. As long as it may still say so, the end is no
// evidence: exit status 0 means that the work is done.
func (g *gathering) askWrapper() {
	r := g.report
	if r == nil || r.Exit != nil || r.PID != g.f.dead.PID {
		return
	}
	if now, err := agentrun.Read(agentrun.Path(g.sources.home, g.agent.Key)); err == nil && identityOfRun(&now) == identityOfRun(r) {
		g.report = &now
	}
	_, lives := g.sources.entry(r.Wrapper)
	switch {
	case g.report.Exit != nil || !lives:
	case time.Duration(g.e.Process.Gone) >= exitTakes:
		g.e.Process.Detail += ", and its wrapper does not say how it ended"
	default:
		g.e.Grace, g.e.GraceDead = cmp.Or(g.e.Grace, g.e.Process.Detail+", and its wrapper has yet to say how it ended"), true
	}
}

// lastProcess is the agent's last known process: seen alive, started by us, or named by its wrapper (it may have been
// started and ended between two looks). begun says that a start was begun and its process is not known.
func (g *gathering) lastProcess() (last process.Identity, begun bool) {
	last = g.known.agentState.Identity
	l := g.known.launch
	ours := l != nil && l.Process != last && l.StartedAt.After(g.known.agentState.Alive)
	if ours {
		last = l.Process
	}
	if r := g.report; r != nil && (last.PID == 0 || !ours && r.StartedAt.After(g.known.agentState.Alive)) {
		return identityOfRun(r), false
	}
	return last, ours && last.PID == 0
}

// lookAtStranger uses a process that may not be the agent's as a sign of life only.
func (g *gathering) lookAtStranger() {
	g.lives(g.stranger)
	g.f.process, g.f.target = process.Identity{}, g.targetOf(process.Identity{})
	g.e.Process.Detail += ", " + g.f.stranger
}

// targetOf is what must be dead before a replacement starts.
func (g *gathering) targetOf(id process.Identity) process.Target {
	t := process.Target{Grace: g.agent.Declared.Budget.KillGrace, LeftBefore: g.now.Wall}
	if id.PID != 0 {
		t.Leaders = append(t.Leaders, id)
	}
	if g.e.Process.Life == diagnose.Dead {
		t.Leaders = append(t.Leaders, g.orphans()...)
	}
	if l := g.known.launch; l != nil {
		t.Runs = append(t.Runs, l.Run)
	}
	if r := g.report; r != nil {
		t.Wrapper = r.Wrapper
	}
	return t
}

func (g *gathering) lives(entry process.Process) {
	p := &g.e.Process
	g.began = g.sources.began(entry.Age, g.now.Wall)
	p.Life, p.Detail, p.Age = diagnose.Alive, fmt.Sprintf("PID %d is alive", entry.PID), g.age(g.began)
	p.Stopped = g.sources.stopped(entry)
	if p.AfterBeat = !g.e.Beat.Has || g.heard(*g.e) > p.Age; p.AfterBeat {
		g.e.Exit = diagnose.Exit{} // of an earlier run
	}
	g.e.Artefact.Seen = !p.AfterBeat
	g.f.process = entry.Identity
	g.f.target = g.targetOf(entry.Identity)
}

// candidates are the possible processes of the agent, the most certain first.
func (g *gathering) candidates() []process.Identity {
	var list []process.Identity
	if g.report != nil {
		if id := identityOfRun(g.report); id.Start != 0 { // otherwise it had ended before the wrapper could identify it
			list = append(list, id)
		}
	} else if l := g.known.launch; l != nil {
		list = append(list, l.Process)
	}
	if entry, ok := g.pidFile(); ok {
		if why := g.doubtful(entry); why != "" {
			g.stranger, g.f.stranger = entry, why
		} else {
			list = append(list, entry.Identity)
		}
	}
	if o, ok := g.sources.beats[g.agent.Key]; ok && o.PID != 0 && o.Start != 0 && g.agent.says("heartbeat") {
		list = append(list, process.Identity{PID: o.PID, Start: o.Start})
	}
	return append(list, g.known.agentState.Identity)
}

// running are the processes of the agent's CLI in its directory, oldest first: a launcher's child matches, too. Those that
// another CLI has started there are not the agent's, even if that one has ended, nor are another agent's.
func (g *gathering) running() []process.Identity {
	kind := vendorKind(g.agent.Kind)
	if kind == "" || !g.agent.ownsDirectory() {
		return nil
	}
	var found []process.Process
	others := g.orphans()
	for _, id := range g.sources.clis {
		p := g.sources.programs[id]
		entry, ok := g.sources.entry(id)
		if !ok || p.kind != kind || !g.agent.runsAs(p.user) || !g.sources.within(p.dir, g.agent.Path) || slices.Contains(others, id) {
			continue
		}
		if !g.sources.startedWithin(id.PID, kind, g.agent.Path) && !g.sources.ofAnother(g.agent, kind, p.dir, id.PID) && !g.ranBeside(entry) {
			found = append(found, entry)
		}
	}
	slices.SortFunc(found, func(a, b process.Process) int { return int(b.Age/time.Millisecond - a.Age/time.Millisecond) })
	var list []process.Identity
	for _, e := range found {
		list = append(list, e.Identity)
	}
	return list
}

// ranBeside reports whether a CLI runs another session than the agent's, and did so before the agent's was last written. It may be a
// person's, and does not take the place of the agent's process when that ends in a turn. After an end at the prompt it may be what goes on.
func (g *gathering) ranBeside(e process.Process) bool {
	own, began := g.known.agentState.Session, g.sources.began(e.Age, g.now.Wall)
	another, before := false, false
	for i := range g.sources.sessions {
		v := &g.sources.sessions[i]
		named := v.PID != 0 && !v.Assigned && !v.Subagent && g.sources.below(v.PID, e.Identity)
		switch {
		case named && v.ID == own:
			return false
		case named:
			another = true
		case v.ID == own && v.Turn.Error.Kind == agentcli.NoFailure && (v.Turn.Ended || v.Status == agentcli.Idle):
			return false
		case v.ID == own:
			before = before || v.Turn.LastAt.After(began) || v.StatusAt.After(began)
		}
	}
	return own != "" && another && before
}

// pidFile is the process named by the declared pidfile.
func (g *gathering) pidFile() (entry process.Process, found bool) {
	path := g.agent.Declared.Match.PIDFile
	if path == "" {
		return entry, false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(g.agent.Path, path)
	}
	text, err := piv.ReadFile(path)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			g.miss(diagnose.FromProcess, err.Error())
		}
		return entry, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	st, statErr := os.Stat(path)
	entry, ok := g.sources.entry(process.Identity{PID: pid})
	if err != nil || statErr != nil || !ok || g.sources.began(entry.Age, g.now.Wall).After(st.ModTime().Add(toolSlack)) {
		return entry, false // a process younger than the file did not write it
	}
	return entry, true
}

// doubtful says why the pidfile's process may not be the agent's: everybody who can write to the directory can write any
// PID into it. "": it is the agent's.
func (g *gathering) doubtful(entry process.Process) string {
	proc, err := g.sources.place(entry.Identity, g.now.Wall)
	kind := vendorKind(g.agent.Kind)
	switch {
	case err != nil || proc.Start != entry.Start:
		return "and cannot be looked at"
	case !g.agent.runsAs(proc.User):
		return "which is another user's"
	case !g.sources.within(proc.Dir, g.agent.Path) && (proc.Dir != "" || !g.hasSessionHere(entry, kind)):
		return fmt.Sprintf("in %s, not in the agent's directory", cmp.Or(proc.Dir, "an unknown directory"))
	case kind != "" && !g.sources.runsCLI(entry.Identity, kind):
		return "which does not run " + agentcli.Of(kind).Title
	}
	return ""
}

// hasSessionHere reports whether the CLI's own files say that a process works in the agent's directory. Not every system
// tells a process's directory.
func (g *gathering) hasSessionHere(entry process.Process, kind agentcli.Kind) bool {
	return slices.ContainsFunc(g.sources.sessions, func(v agentcli.Session) bool {
		return v.Kind == kind && v.PID == entry.PID && (v.Start == 0 || v.Start == entry.Start) && g.sources.within(v.Dir, g.agent.Path)
	})
}

func (g *gathering) run() {
	g.missReport()
	r := g.report
	if r == nil || g.e.Process.Life == diagnose.Alive && r.PID != g.f.process.PID {
		return
	}
	if r.Exit != nil {
		g.ended(r)
	}
	if !r.OutputAt.IsZero() && g.agent.says("output") {
		news := r.OutputAt
		g.e.Output = diagnose.Output{Known: true, Age: g.age(r.OutputAt)}
		if t := r.TextAt; !t.IsZero() && t.Before(news) {
			news, g.e.Output.Drawn = t, g.age(t)
		}
		g.signs = append(g.signs, fmt.Sprintf("%d/%s", r.PID, news.UTC().Truncate(outputGrain).Format(time.RFC3339)))
	}
	if r.Title != "" {
		g.e.Title = diagnose.Title{Text: r.Title, Status: r.TitleState, Age: g.age(r.TitleAt)}
	}
	if _, lives := g.sources.entry(r.Wrapper); !lives && g.e.Process.Life == diagnose.Alive && r.Wrapper.PID != 0 {
		g.e.Process.Orphaned = true
	}
	if _, lives := g.sources.entry(r.Wrapper); lives && r.Exit == nil {
		g.f.joinable, g.f.piped, g.f.joined = r.Socket != "", r.Piped, r.Joined
	}
	g.f.text = strings.Join(r.LastLines, "\n")
	if r.Session != "" {
		g.f.session = r.Session
	}
	g.notice(r)
}

// notice uses the latest sd_notify message as the heartbeat, if it is the youngest.
func (g *gathering) notice(r *agentrun.Report) {
	n := r.Notice
	if n == nil || n.At.IsZero() || !g.agent.says("heartbeat") {
		return
	}
	age := g.age(n.At)
	if b := g.e.Beat; b.Has && b.Age >= 0 && b.Age <= age {
		return
	}
	g.e.Beat = diagnose.Beat{Has: true, Age: age, Note: n.Status}
	switch {
	case n.Stuck:
		g.e.Beat.State = diagnose.Stuck
	case n.Stopping:
		g.e.Beat.State = diagnose.Exiting
	}
	if n.Until.After(n.At) {
		g.e.Beat.Next = diagnose.Span(n.Until.Sub(n.At))
	}
	if g.e.Process.Life == diagnose.Alive {
		g.e.Process.AfterBeat = age > g.e.Process.Age
		g.e.Artefact.Seen = g.e.Artefact.Seen || !g.e.Process.AfterBeat
	}
	g.signs = append(g.signs, n.At.UTC().Truncate(outputGrain).Format(time.RFC3339))
}

// outputGrain is the resolution in which output counts as new signs of life, since each is stored.
const outputGrain = 10 * time.Second

// ended takes the exit from the wrapper's report, which has more details than the process table.
func (g *gathering) ended(r *agentrun.Report) {
	g.e.Exit = diagnose.Exit{Known: true, Code: r.Exit.Code, Signal: r.Exit.Signal, Limit: g.ownLimit(r)}
	if g.e.Process.Life == diagnose.Alive {
		if proc, err := g.sources.procs.Look(r.PID); err != nil && !errors.Is(err, os.ErrProcessDone) || err == nil && proc.Identity == g.f.process {
			return // a contradiction, which has its own class
		}
		g.f.process = process.Identity{} // it has ended since the table of processes was read
	}
	g.died = true
	p := &g.e.Process
	p.Life, p.Detail, p.Gone = diagnose.Dead, fmt.Sprintf("PID %d has ended", r.PID), g.age(r.Exit.At)
	g.f.dead, g.f.target = identityOfRun(r), g.targetOf(identityOfRun(r))
}

// ownLimit is the limit of its own at which a CLI has ended, as the end of its output says. To go on with it would defy that.
func (g *gathering) ownLimit(r *agentrun.Report) string {
	if r.Exit.Code == 0 || r.Exit.Signal != "" {
		return ""
	}
	cli, last := agentcli.Of(vendorKind(g.agent.Kind)), ""
	if n := len(r.LastLines); n > 0 {
		last = r.LastLines[n-1]
	}
	return cmp.Or(cli.OwnLimit(r.Failed), cli.OwnLimit(last))
}

// told takes the error that a CLI's output named at its end, if its session shows none. `gemini -p` writes none into it.
func (g *gathering) told() {
	r, kind := g.report, vendorKind(g.agent.Kind)
	if !g.died || r == nil || r.Exit == nil || r.Exit.Code == 0 || r.Failed == "" || kind == "" || g.e.LastError.Kind != "" {
		return
	}
	g.e.LastError = g.failure(agentcli.Told(kind, r.Failed, r.Exit.At))
}

// undeclared reports whether the agent's owner has not said what marks its work as done.
func (g *gathering) undeclared() bool {
	done := g.agent.Declared.Expect.Done
	return done.Exit == nil && done.Manifest == ""
}

// markDone treats the exit status of a headless command as the mark of its work, unless another mark is declared or the
// last thing known is an error.
func (g *gathering) markDone(r *agentrun.Report) {
	failed := g.e.LastError.Kind != ""
	if !g.errorShown { // the last error may have been resolved or not
		failed = failed || g.known.agentState.Trouble.Class != ""
	}
	if r.Headless && g.undeclared() && r.Exit.Code == 0 && r.Exit.Signal == "" && !failed {
		g.e.Done = "it worked on its prompt and exited 0"
	}
}
