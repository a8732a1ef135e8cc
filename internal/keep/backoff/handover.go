package backoff

import (
	"slices"
	"time"
)

// Saved is what a [Tracker] remembers, in a form that can be kept as JSON: counters and failures must survive the
// program they were counted by.
type Saved struct {
	Restarts, Failures, Opens int
	Times                     []time.Time
	Breaker                   uint8 // a breaker
	ReadySince, Requested     time.Time
	Granted                   bool
}

// Save returns all that t remembers but its policy.
func (t *Tracker) Save() Saved {
	return Saved{
		Restarts: t.restarts, Failures: t.failures, Opens: t.opens,
		Times: slices.Clone(t.times), Breaker: uint8(t.breaker),
		ReadySince: t.readySince, Requested: t.requested, Granted: t.granted,
	}
}

// Restore returns a tracker that goes on where the one that was saved stood. The policy may be another one.
func Restore(p Policy, s Saved) *Tracker {
	t := NewTracker(p)
	t.restarts, t.failures, t.opens = s.Restarts, s.Failures, s.Opens
	t.breaker, t.readySince, t.requested, t.granted = breaker(s.Breaker), s.ReadySince, s.Requested, s.Granted
	if n := t.policy.MaxRestarts; n > 0 && t.policy.Window > 0 {
		t.times = slices.Clone(s.Times[max(0, len(s.Times)-n):])
	}
	return t
}
