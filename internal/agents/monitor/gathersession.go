package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/hooks"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
)

// sessions are the CLI sessions of the living process, or of the dead one.
func (g *gathering) sessions() {
	kind := vendorKind(g.agent.Kind)
	if kind == "" || !g.agent.says("transcript") {
		return
	}
	g.e.Artefact.Expected = g.e.Artefact.Expected || !g.unprompted(kind)
	g.missFiles(kind)
	if g.died && g.f.session == "" {
		g.f.session = g.known.agentState.Session // the latest in the directory may belong to another process
	}
	own, nested := g.ownSessions(kind)
	for _, v := range nested {
		g.e.Nested = append(g.e.Nested, g.session(v))
	}
	g.own = own
	for _, v := range own {
		g.shownBy(v)
		switch {
		case !g.died:
			g.e.Sessions = append(g.e.Sessions, g.session(v))
		case v.ID == g.f.session && !v.Subagent && v.File != "":
			g.f.shown = lastShown{Of: g.f.dead, Left: g.leftBy(v), Error: g.cause(v)}
		}
	}
	g.atEnd()
	g.tasksGone()
}

// tasksGone is since when all background tasks are gone. While one may live, none is called dead.
func (g *gathering) tasksGone() {
	var tasks []*diagnose.Task
	for i := range g.e.Sessions {
		for j := range g.e.Sessions[i].Tasks {
			tasks = append(tasks, &g.e.Sessions[i].Tasks[j])
		}
	}
	if len(tasks) == 0 || slices.ContainsFunc(tasks, func(t *diagnose.Task) bool { return !t.Gone }) {
		return
	}
	g.f.tasksGone = g.known.agentState.TasksGone
	if g.f.tasksGone.IsZero() {
		g.f.tasksGone = g.now.Wall.Round(0)
	}
	for _, t := range tasks {
		t.GoneAge = max(t.GoneAge, g.age(g.f.tasksGone))
	}
}

// shownBy records facts that hold for living and dead agents: the session continues, which session is the agent's own,
// that it has begun, and how long its tool runs.
func (g *gathering) shownBy(v *agentcli.Session) {
	inProcess := v.PID == g.f.process.PID && v.PID != 0
	g.signs = append(g.signs, fmt.Sprintf("%s/%d/%s", v.ID, v.Turn.Sequence, v.StatusAt.UTC().Format(time.RFC3339Nano)))
	if !v.Subagent && (g.f.session == "" || inProcess) {
		g.f.session = v.ID
	}
	works := v.Turn.LastAt.After(g.began.Add(-toolSlack)) || v.Status == agentcli.Busy && v.StatusAt.After(g.began)
	there := v.StatusAt.After(g.began) || inProcess
	if g.began.IsZero() || works || there && !g.prompted() {
		g.e.Artefact.Seen = true
	}
	if !g.died && !v.Turn.OpenAt.IsZero() && (v.Turn.Open == agentcli.Tool || g.allowed(v)) {
		g.f.tool = v.Turn.OpenAt
	}
}

// prompted reports whether we have started the process with a prompt: by a command that works on one, or to go on with a
// session. That its session is there does not show that it has begun: a dialog may stand before the prompt. What others have
// started may wait for its input.
func (g *gathering) prompted() bool {
	if !g.startedByUs() {
		return false
	}
	resumed := g.known.launch.Act.Rung == recovery.Resume && wants(g.agent.Declared.Start.Resume, "preamble")
	return g.e.Process.Headless || resumed
}

// unprompted reports an interactive process that we did not start and that got no prompt on its command line. Without a
// session it may simply wait for a person to type one.
func (g *gathering) unprompted(kind agentcli.Kind) bool {
	if !agentcli.Of(kind).SilentUntilPrompted || g.headless() || g.startedByUs() {
		return false
	}
	found := false
	for _, id := range g.sources.clis {
		if p := g.sources.programs[id]; p.kind == kind && g.sources.below(id.PID, g.f.process) {
			if p.prompted {
				return false
			}
			found = true
		}
	}
	return found
}

// ours reports whether a session is the agent's: by its id, by its process, or by its directory and its age.
func (g *gathering) ours(v *agentcli.Session) bool {
	if id := g.agent.Declared.Match.Session; id != "" && id != "auto" {
		return v.ID == id
	}
	if !g.agent.ownsDirectory() || !g.sources.within(v.Dir, g.agent.Path) {
		return false
	}
	if v.PID == 0 { // the files name no process: accept sessions written while the process has lived, or while we watched
		if g.sources.ofAnother(g.agent, v.Kind, v.Dir, 0) {
			return false
		}
		since := g.began.Add(-toolSlack)
		switch {
		case g.began.IsZero():
			since = g.known.agentState.Since
		case g.known.launch != nil: // the previous run's last writes are not its own
			since = g.began
		}
		return !since.IsZero() && v.Turn.LastAt.After(since)
	}
	id := process.Identity{PID: v.PID, Start: v.Start}
	if g.f.process == (process.Identity{}) {
		was := g.known.agentState.Identity
		return was.PID == id.PID && (id.Start == 0 || id.Start == was.Start)
	}
	_, lives := g.sources.entry(id)
	return lives && g.sources.below(id.PID, g.f.process) // or a descendant, behind npx, a shell or a wrapper
}

// session is a session as evidence: what its files say, with ages in the place of times.
func (g *gathering) session(v *agentcli.Session) diagnose.Session {
	t := v.Turn
	d := diagnose.Session{
		Kind: v.Kind, ID: v.ID, Status: v.Status, WaitingFor: v.WaitingFor,
		Open: t.Open, OpenText: t.ToolInput, Tool: t.Tool, Ended: t.Ended, EndedAsking: t.EndedAsking, LastText: t.LastText,
		Interrupted: t.Interrupted, WakesItself: t.WakesItself,
		Repeats: t.Repeats, Tokens: t.Tokens, CostUSD: t.CostUSD, Turns: t.Turns,
	}
	last := t.LastAt
	if v.SubagentAt.After(last) {
		last = v.SubagentAt
	}
	shown := last
	if d.Unwritten = last.IsZero(); d.Unwritten {
		shown = cmp.Or(v.StatusAt, g.began)
	}
	for _, x := range []struct {
		at time.Time
		to *diagnose.Span
	}{{v.StatusAt, &d.StatusAge}, {t.OpenAt, &d.OpenAge}, {shown, &d.LastAge}, {t.ProgressAt, &d.ProgressAge}} {
		if !x.at.IsZero() {
			*x.to = g.age(x.at)
		}
	}
	d.ProgressKnown = !t.ProgressAt.IsZero()
	if r := g.report; d.Open == agentcli.Model && r != nil && r.PID == g.f.process.PID && r.CountAt.After(t.OpenAt) && g.agent.says("output") {
		d.OpenAge = g.age(r.CountAt) // its terminal counts what the model writes, which its files have only at the end
	}
	if g.unallowed(v) {
		d.Open = agentcli.Permission
	}
	if g.allowed(v) {
		d.Open, d.OpenAge = agentcli.Tool, min(d.OpenAge, g.e.Title.Age)
	}
	if d.Open == agentcli.Tool && v.SubagentAt.After(t.OpenAt) {
		d.OpenAge = g.age(v.SubagentAt) // its subagents count as the tool
	}
	if d.Error = g.failure(t.Error); g.ofRunBefore(v, last) {
		g.beginAnew(v, &d)
	}
	if v.Subagent && t.Ended { // the session that has started it learns what it has asked or failed with
		d.EndedAsking, d.Error = false, diagnose.SessionError{}
	}
	for _, task := range t.Tasks {
		d.Tasks = append(d.Tasks, g.task(v, task))
	}
	if g.e.Process.Bare {
		g.leave(&d)
	}
	return d
}

// runsAgain is how long a script may wait after an error that passes by itself. Loops around a CLI wait for an hour.
const runsAgain = 2 * time.Hour

// leave takes out of a session what is over with its CLI. Its script goes on, and nobody can answer it any more.
func (g *gathering) leave(d *diagnose.Session) {
	d.EndedAsking, d.Tasks = false, nil
	passes := d.Error.Kind == agentcli.APIFailure || d.Error.Kind == agentcli.RateLimited
	if passes && time.Duration(d.LastAge) <= runsAgain {
		d.Error = diagnose.SessionError{}
	}
}

// ofRunBefore reports whether a session was last written before the process was started that goes on with it. What it waited for
// or failed with then is over.
func (g *gathering) ofRunBefore(v *agentcli.Session, last time.Time) bool {
	return v.PID != 0 && !last.IsZero() && last.Before(g.began.Add(-toolSlack)) && g.sources.below(v.PID, g.f.process)
}

// beginAnew takes out of a session what is of the run before.
func (g *gathering) beginAnew(v *agentcli.Session, d *diagnose.Session) {
	d.Open, d.OpenAge, d.Tool, d.OpenText = agentcli.Nothing, 0, "", ""
	d.EndedAsking, d.Error, d.Repeats = false, diagnose.SessionError{}, agentcli.Repeats{}
	works := d.Status == agentcli.Busy && v.StatusAt.After(g.began)
	switch d.Ended = !works; {
	case works:
		d.LastAge = d.StatusAge
	case d.Status == agentcli.Busy, d.Status == agentcli.Retrying:
		d.Status = agentcli.Idle
	}
}

// unallowed reports whether a command waits for a permission, which the files of its CLI do not show: no process is as young as it.
func (g *gathering) unallowed(v *agentcli.Session) bool {
	t := v.Turn
	if _, there := g.sources.entry(g.f.process); !there || t.Open != agentcli.Tool || t.Tool == "" || t.Tool != agentcli.Of(v.Kind).Shell || g.e.Process.Headless {
		return false
	}
	return !g.startedSince(t.OpenAt)
}

// startedSince reports whether a process that the agent has started is as young as something that it began at t.
func (g *gathering) startedSince(t time.Time) bool {
	return slices.ContainsFunc(g.sources.helpers(g.f.process), func(e process.Process) bool {
		return !g.sources.began(e.Age, g.now.Wall).Before(t.Add(-toolSlack))
	})
}

// allowed reports whether a call that asks for more rights runs. Its CLI writes nothing when a person has allowed it, but its
// title asks no more.
func (g *gathering) allowed(v *agentcli.Session) bool {
	return v.Turn.Open == agentcli.Permission && g.e.Title.Status == agentcli.Busy && !g.e.Process.Orphaned
}

// task is the evidence of a background task. It is gone when its CLI said so, or when no descendant of the agent is as
// young as the task. Agents missing in the process table prove nothing.
func (g *gathering) task(v *agentcli.Session, task agentcli.Task) diagnose.Task {
	d := diagnose.Task{Tool: task.Tool, Text: task.Input, Age: g.age(task.At), Shell: task.Shell, Awaited: v.Awaits(task)}
	if !task.WroteAt.IsZero() {
		d.SilentKnown, d.Silent = true, g.age(task.WroteAt)
	}
	if v.SubagentAt.After(task.WroteAt) && !task.Shell {
		d.Silent = g.age(v.SubagentAt)
	}
	if task.Left {
		d.Gone, d.GoneAge = true, d.Age
		return d
	}
	if _, there := g.sources.entry(g.f.process); there {
		d.Gone = !g.startedSince(task.At)
	}
	return d
}

// quietCommand corrects the title of a CLI that also asks for a person over a quiet command. What was started since the
// session's last record, and before the title, is such a command; a call that wants a permission has not been started.
func (g *gathering) quietCommand() {
	if g.e.Title.Status != agentcli.Waiting {
		return
	}
	for _, v := range g.own {
		runs := func(e process.Process) bool {
			began := g.sources.began(e.Age, g.now.Wall)
			return began.After(v.Turn.LastAt) && began.After(v.SubagentAt) && began.Before(g.report.TitleAt)
		}
		if agentcli.Of(v.Kind).Signs.Quiet && slices.ContainsFunc(g.sources.helpers(g.f.process), runs) {
			g.e.Title.Status = agentcli.Busy
		}
	}
}

// failure is a vendor's error as evidence.
func (g *gathering) failure(x agentcli.Failure) diagnose.SessionError {
	if x.Kind == agentcli.NoFailure {
		return diagnose.SessionError{}
	}
	e := diagnose.SessionError{Kind: x.Kind, Status: x.Status, Text: x.Text, Attempt: x.Attempt, Max: x.Max}
	if !x.Until.IsZero() {
		e.ResetKnown, e.ResetIn = true, diagnose.Span(x.Until.Sub(g.now.Wall))
	}
	if !x.RetryAt.IsZero() {
		e.RetryKnown, e.RetryIn = true, diagnose.Span(x.RetryAt.Sub(g.now.Wall))
	}
	return e
}

// hooks are permission requests: those that a hook holds for us, and those in the agent's own dialog.
func (g *gathering) hooks() {
	if !g.agent.says("hooks") || g.e.Process.Life == diagnose.Dead {
		return
	}
	g.missRequests()
	for _, q := range g.sources.requests[g.agent.Key] {
		if g.answeredThere(q) {
			g.f.answered = append(g.f.answered, q.ID)
			continue
		}
		g.e.Hooks = append(g.e.Hooks, diagnose.Request{Tool: q.Tool, Text: q.Command, Age: g.age(q.Asked)})
		if g.f.request == "" {
			g.f.request, g.f.input = q.ID, q.Tool+": "+q.Command
		}
	}
	asks := g.known.agentState.Asks
	if len(g.e.Hooks) == 0 && !asks.At.IsZero() && !g.wentOnSince(asks.At) {
		g.e.Hooks = append(g.e.Hooks, diagnose.Request{Tool: asks.Tool, Text: asks.Text, Age: g.age(asks.At)})
		g.f.text, g.f.unasked = asks.Tool+": "+asks.Text, asks.Unasked
	}
}

// answeredThere reports whether a person has answered a request at the CLI's own dialog, for which no hook is ended. The
// status is of a time after the dialog was shown.
func (g *gathering) answeredThere(q hooks.Request) bool {
	return q.Subagent == "" && slices.ContainsFunc(g.own, func(v *agentcli.Session) bool {
		on := v.Status == agentcli.Busy || v.Status == agentcli.Idle
		return v.ID == q.Session && !v.Subagent && on && agentcli.Of(v.Kind).TellsStatus && v.StatusAt.After(q.Asked.Add(toolSlack))
	})
}

// wentOnSince reports whether a session has left a dialog that it showed at t. A title that has come to say so since then counts,
// and the status of CLIs that write it within a second (measured); others must write something.
func (g *gathering) wentOnSince(t time.Time) bool {
	since := g.age(t.Add(toolSlack))
	if title := g.e.Title; title.Status == agentcli.Busy && title.Age < since {
		return true
	}
	for _, s := range g.e.Sessions {
		told := agentcli.Of(s.Kind).TellsStatus && (s.Status == agentcli.Busy || s.Status == agentcli.Idle)
		if told || since > 0 && s.LastAge < since {
			return true
		}
	}
	return false
}
