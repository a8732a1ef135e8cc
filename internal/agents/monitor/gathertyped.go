package monitor

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
)

// nudgeEcho is how long after our text a prompt in the session may be that text.
const nudgeEcho = time.Minute

// lookForPerson finds when a person last typed in the session or joined its terminal: by keys at the wrapper's or a
// joined terminal, by join times, by prompts in the CLI's files, and by its hook.
func (g *gathering) lookForPerson() {
	if g.e.Process.Life != diagnose.Alive {
		return
	}
	typed := g.prompts()
	if r := g.report; r != nil && r.PID == g.f.process.PID && g.agent.says("output") {
		typed = append(typed, r.TypedAt)
		for _, j := range g.f.joined {
			typed = append(typed, j.Since)
		}
	}
	for _, t := range typed {
		if t.After(g.f.typed) && !t.After(g.now.Wall) {
			g.f.typed = t
		}
	}
}

// prompts are the times when a person gave the session a prompt. Headless sessions and those that we started have none.
func (g *gathering) prompts() (typed []time.Time) {
	if g.headless() || g.sources.programs[g.f.process].headless || g.startedByUs() {
		return nil
	}
	if g.agent.says("hooks") {
		typed = append(typed, g.known.agentState.TypedAt)
	}
	for _, v := range g.own {
		if !v.Subagent {
			typed = append(typed, v.Turn.TypedAt)
		}
	}
	return slices.DeleteFunc(typed, g.ownWords)
}

// startedByUs reports whether the process is the one we started last, or a descendant of it.
func (g *gathering) startedByUs() bool {
	l := g.known.launch
	return l != nil && g.sources.below(g.f.process.PID, l.Process)
}

// ownWords reports whether a prompt may be a text of ours.
func (g *gathering) ownWords(t time.Time) bool {
	return slices.ContainsFunc(g.known.nudged, func(at time.Time) bool { return !t.Before(at.Add(-toolSlack)) && t.Before(at.Add(nudgeEcho)) })
}

// atEnd takes what the session of a dead process shows at its end, or did when it was last read. Transcripts of ended
// processes are left out after some days.
func (g *gathering) atEnd() {
	if was := g.known.agentState.Shown; g.died && g.f.shown.Of.PID == 0 && was.Of == g.f.dead {
		g.f.shown = was
	}
	if g.f.shown.Of.PID == 0 {
		return
	}
	g.errorShown, g.left, g.e.LastError = true, g.f.shown.Left, g.failure(g.f.shown.Error)
}

// cause is the last error of a dead process's session, unless it is older than the process.
func (g *gathering) cause(v *agentcli.Session) agentcli.Failure {
	began := g.known.agentState.Alive.Add(-nudgeEcho)
	switch {
	case g.report != nil:
		began = g.report.StartedAt
	case g.known.launch != nil && g.known.launch.StartedAt.After(g.known.agentState.Alive):
		began = g.known.launch.StartedAt
	}
	x := v.Turn.Error
	if x.Kind == agentcli.NoFailure || x.At.Before(began.Add(-toolSlack)) {
		return agentcli.Failure{}
	}
	x.Text = notify.Redact(x.Text) // it is kept
	x.At, x.RetryAt, x.Until = x.At.UTC(), x.RetryAt.UTC(), x.Until.UTC()
	return x
}

// leaves is how long after an interruption by a person the end of the process counts as that person's doing: both CLIs
// record the interruption of a headless command, and exit (recorded: Claude Code 2.1.330 with status 0, Codex 0.169.0
// with 1).
const leaves = time.Minute

// leftBy reports whether a person interrupted the last turn of a dead process, and it ended because of that. We never
// interrupt these two CLIs ourselves.
func (g *gathering) leftBy(v *agentcli.Session) bool {
	ended := g.now.Wall.Add(-time.Duration(g.e.Process.Gone))
	return v.Turn.Interrupted && ended.Sub(v.Turn.LastAt) <= leaves
}
