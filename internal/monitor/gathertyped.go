package monitor

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/diagnose"
	"github.com/outlive-mcp/outlive/internal/vendors"
)

// nudgeEcho is how long after a text of ours a prompt in the session may be that text.
const nudgeEcho = time.Minute

// lookForPerson notes when a person last typed in the living session: by the prompts in its CLI's own files, by its hook, and by
// the keys at the wrapper's terminal. A session that works on one prompt, and one that we have started, has no keyboard.
func (g *gathering) lookForPerson() {
	if g.e.Process.Life != diagnose.Alive || g.headless() || g.sources.programs[g.f.process].headless || g.startedByUs() {
		return
	}
	var typed []time.Time
	if g.agent.says("hooks") {
		typed = append(typed, g.known.sight.TypedAt)
	}
	for i := range g.sources.sessions {
		if v := &g.sources.sessions[i]; g.agent.says("transcript") && v.Kind == vendorKind(g.agent.Kind) && !v.Subagent && g.ours(v) {
			typed = append(typed, v.Turn.TypedAt)
		}
	}
	typed = slices.DeleteFunc(typed, g.ownWords)
	if r := g.report; r != nil && r.PID == g.f.process.PID && g.agent.says("output") {
		typed = append(typed, r.TypedAt)
	}
	for _, t := range typed {
		if t.After(g.f.typed) && !t.After(g.now.Wall) {
			g.f.typed = t
		}
	}
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
func (g *gathering) cause(v *vendors.Session) {
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
