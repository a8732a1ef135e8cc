package monitor

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
)

// setting has the inputs for gathering evidence at one look.
type setting struct {
	now       Clocks
	sleeps    []Sleep
	grace     string // why silence is not evidence now
	graceDead bool
	lost      string // why the registry cannot be read; one of PIV's does not show the current heartbeats then
	sources   *sources
	kept      *kept
}

// age is how long ago t was, without the time that the machine slept.
func (s *setting) age(t time.Time) diagnose.Span {
	return diagnose.Span(max(Age(t, s.now.Wall, s.sleeps), 0))
}

// beaten notes the time of a heartbeat. One of the future is as old as our first sight of it.
func (s *setting) beaten(b *diagnose.Beat, at time.Time, k known) {
	b.Has, b.Age = true, s.age(at)
	if at.After(s.now.Wall) {
		b.Age = diagnose.Span(s.now.Wall.Sub(at))
		if ahead := k.agentState.AheadSince; !ahead.IsZero() {
			b.Seen = s.age(ahead)
		}
	}
}

// heard is how long ago the agent last gave a sign of life by a heartbeat.
func (s *setting) heard(e diagnose.Evidence) diagnose.Span {
	if e.Beat.Age < 0 {
		return e.Beat.Seen
	}
	return e.Beat.Age
}
