package monitor

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// nudgeEcho is how long after a text of ours a prompt in the session may be that text.
const nudgeEcho = time.Minute

// lookForPerson notes when a person last typed in the living session, or came to look at it: by the keys at its terminal, the wrapper's
// own or one that somebody has joined, by when those who are there have joined it, by the prompts in its CLI's own files, and by its hook.
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

// prompts are when a person has given the session one. The prompts of a session that works on one, and of one that we have
// started, are nobody's.
func (g *gathering) prompts() (typed []time.Time) {
	if g.headless() || g.sources.programs[g.f.process].headless || g.startedByUs() {
		return nil
	}
	if g.agent.says("hooks") {
		typed = append(typed, g.known.sight.TypedAt)
	}
	for i := range g.sources.sessions {
		if v := &g.sources.sessions[i]; g.agent.says("transcript") && v.Kind == vendorKind(g.agent.Kind) && !v.Subagent && g.ours(v) {
			typed = append(typed, v.Turn.TypedAt)
		}
	}
	return slices.DeleteFunc(typed, g.ownWords)
}

// startedByUs reports whether the process is the one that we have started last, or below it.
func (g *gathering) startedByUs() bool {
	l := g.known.launch
	return l != nil && g.sources.below(g.f.process.PID, l.Process)
}

// ownWords reports whether a prompt may be a text that we have handed to the session.
func (g *gathering) ownWords(t time.Time) bool {
	return slices.ContainsFunc(g.known.nudged, func(at time.Time) bool { return !t.Before(at.Add(-toolSlack)) && t.Before(at.Add(nudgeEcho)) })
}

// cause keeps the error that the session of a dead process shows last, unless it is older than that process.
func (g *gathering) cause(v *agentcli.Session) {
	g.lastWord = true
	began := g.known.sight.Alive.Add(-nudgeEcho)
	switch {
	case g.report != nil:
		began = g.report.StartedAt
	case g.known.launch != nil && g.known.launch.StartedAt.After(g.known.sight.Alive):
		began = g.known.launch.StartedAt
	}
	if v.Turn.Error.At.Before(began.Add(-toolSlack)) {
		return
	}
	g.e.LastError = g.failure(v.Turn.Error)
}

// leaves is how long after a person has interrupted a turn the end of the process is that person's doing, too: both CLIs write the
// interruption of a command that works on one prompt, and end (recorded: Claude Code 2.1.330 with status 0, Codex 0.169.0 with 1).
const leaves = time.Minute

// leftBy reports whether a person has interrupted the last turn of a dead process, and it has ended over that. We interrupt
// neither of the two CLIs whose sessions say so.
func (g *gathering) leftBy(v *agentcli.Session) bool {
	ended := g.now.Wall.Add(-time.Duration(g.e.Process.Gone))
	return v.Turn.Interrupted && ended.Sub(v.Turn.LastAt) <= leaves
}
