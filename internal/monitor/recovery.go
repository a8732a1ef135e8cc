package monitor

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/piv"
)

// Budgets. Attempts are kept as times, so that a window is one.
const (
	crashWindow = time.Hour      // in which crashBudget crashes are restarted
	phaseWindow = 24 * time.Hour // in which one phase's hangs and questions are counted
	crashBudget = 5
)

// ActionKind is what is done about a stall (S4 RecoveryAction).
type ActionKind string

// The kinds of S4.
const (
	Restart             ActionKind = "restart"
	RestartWithPreamble ActionKind = "restart_with_preamble"
	Escalate            ActionKind = "escalate"
	Skip                ActionKind = "skip"
)

// Action is what is to be done.
type Action struct {
	Kind   ActionKind
	Reason string // of Skip
	// Count is how many restarts there were in the window, Max how many there may be.
	Count, Max int
}

// Attempt is an earlier restart of one project.
type Attempt struct {
	At    time.Time
	Stall Stall
	Phase int
}

// History is what has been done about a project before.
type History struct {
	Attempts []Attempt
	Open     bool      // a human has been told of this stall, in this phase
	Held     bool      // a human has been told of an error, which no restart cures
	Last     time.Time // of the last action of any kind
	Blind    int       // looks in a row that saw nothing, with this one
}

// Decide says what is done about a verdict. It is pure. The decisions are S4's "Recovery from
// Agent-Waiting-For-Input" and "Fix or Escalate", with a budget on every stall.
func Decide(v Verdict, phase int, h History, p Policy, now time.Time) Action {
	if v.Stall == noStall {
		return Action{Kind: Skip, Reason: v.Class}
	}
	a := Action{Kind: Escalate}
	switch v.Stall {
	case Crashed:
		a.Count, a.Max = count(h, now, crashWindow, func(t Attempt) bool { return t.Stall == Crashed }), max(crashBudget, p.Restarts)
		if a.Count < a.Max {
			a.Kind = Restart
		}
	case Hung, Waiting:
		same := func(t Attempt) bool { return t.Stall == v.Stall && t.Phase == phase }
		a.Count, a.Max = count(h, now, phaseWindow, same), p.Restarts-1 // S4: the third occurrence is told
		switch {
		case a.Count >= a.Max:
		case v.Stall == Waiting:
			a.Kind = RestartWithPreamble
		default:
			a.Kind = Restart
		}
	case Blind:
		if v.Class == "lost" { // one message tells of the registry, not one for each project
			return Action{Kind: Skip, Reason: "the registry cannot be read"}
		}
		if h.Blind < blindFor {
			return Action{Kind: Skip, Reason: "it is looked at again"}
		}
	}
	switch {
	case a.Kind == Escalate && h.Open, a.Kind != Escalate && h.Held:
		a.Kind, a.Reason = Skip, "a human has been told"
	case !h.Last.IsZero() && now.Sub(h.Last) < p.Pace && !now.Before(h.Last):
		a.Kind, a.Reason = Skip, "the last action was only just"
	}
	return a
}

// count is how many attempts of a kind fall into the window. One in the future, from before the clock was set back,
// counts: a budget is not won by a wrong clock.
func count(h History, now time.Time, window time.Duration, of func(Attempt) bool) int {
	n := 0
	for _, t := range h.Attempts {
		if of(t) && now.Sub(t.At) < window {
			n++
		}
	}
	return n
}

// statusAfter is what the registry says of a project once a human has been told.
func statusAfter(s Stall) piv.Status {
	if s == Errored {
		return piv.Failed
	}
	return piv.Stalled
}
