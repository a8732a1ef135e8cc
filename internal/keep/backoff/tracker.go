package backoff

import "time"

// breaker is whether crashes are still followed by restarts.
type breaker uint8

const (
	closed   breaker = iota // restarts go by the curve
	open                    // the budget is spent; at most one try after OpenFor
	halfOpen                // that try is running and has not become ready yet
)

// Tracker remembers the restarts of one process. Use [NewTracker].
type Tracker struct {
	policy   Policy
	restarts int // lifetime, of any cause
	failures int // crashes since the failures were last forgotten

	times []time.Time // of the last MaxRestarts restarts after a crash, oldest first; only kept with a Window

	breaker breaker
	opens   int // since the interval was last reset

	readySince time.Time // zero: not ready
	requested  time.Time // the last requested restart, in the future while it waits; zero: none
	granted    bool      // a restart is counted that has not begun
}

// NewTracker returns the memory of a process that has not been started yet. A policy without a curve stands for
// [Transparent].
func NewTracker(p Policy) *Tracker { return &Tracker{policy: p.orDefault()} }

// Policy returns the policy in force.
func (t *Tracker) Policy() Policy { return t.policy }

// Crash records that the process ended, or did not come up, unexpectedly, and says how long to wait
// before it is started again. open says that the budget is spent: then delay is the time until the one try that may
// close the breaker, 0 meaning that there is none by itself. rnd in [0,1) is for the jitter.
func (t *Tracker) Crash(now time.Time, rnd float64) (delay time.Duration, opened bool) {
	t.Healthy(now) // for an owner whose timer came late
	t.readySince = time.Time{}
	t.failures++
	if t.breaker != closed {
		return t.open(), true
	}
	delay = t.policy.curve(t.failures, t.restarts+1)
	delay += time.Duration(rnd * t.policy.Jitter * float64(delay))
	if t.spent(now.Add(delay)) {
		return t.open(), true
	}
	t.record(now.Add(delay))
	t.restarts++
	t.granted = true
	return delay, false
}

// spent reports whether a restart at that time would be one more than the budget allows.
func (t *Tracker) spent(at time.Time) bool {
	n := t.policy.MaxRestarts
	switch {
	case n == 0:
		return false
	case t.policy.Window == 0:
		return t.failures > n
	}
	return len(t.times) >= n && at.Sub(t.times[len(t.times)-n]) < t.policy.Window
}

// record keeps a restart's time as long as it can matter.
func (t *Tracker) record(at time.Time) {
	n := t.policy.MaxRestarts
	if n == 0 || t.policy.Window == 0 {
		return
	}
	if len(t.times) == n {
		t.times = append(t.times[:0], t.times[1:]...)
	}
	t.times = append(t.times, at)
}

func (t *Tracker) open() time.Duration {
	t.breaker = open
	t.opens++
	t.granted = false
	if t.policy.OpenFor == 0 {
		return 0
	}
	return double(t.policy.OpenFor, t.opens-1, t.policy.OpenMax)
}

// Requested records a requested restart and says how long to wait: what is missing to Floor since the
// last such restart (WD-11; throttled says that something was), plus RequestPause. Crashes do not count for the floor.
func (t *Tracker) Requested(now time.Time) (delay time.Duration, throttled bool) {
	t.readySince = time.Time{}
	if !t.granted {
		t.restarts++
		t.granted = true
	}
	at := now
	if next := t.requested.Add(t.policy.Floor); next.After(now) {
		at = next
	}
	t.requested = at
	return at.Sub(now) + t.policy.RequestPause, at.After(now)
}

// Started takes note that a process is being started: the restart granted last has begun. A start while the breaker
// is open is the one try that may close it, and counts as a restart.
func (t *Tracker) Started(now time.Time) {
	if t.breaker == open {
		t.breaker = halfOpen
		t.restarts++
		t.record(now)
	}
	t.granted = false
	t.readySince = time.Time{}
}

// Ready takes note that the process came up. Healthy time counts from here (GW-6: of readiness, not since the spawn).
// It closes the breaker; a crash before the process is healthy can open it again, for twice as long.
func (t *Tracker) Ready(now time.Time) {
	t.readySince = now
	t.breaker = closed
}

// Unready takes note that the process runs but no longer counts as up: its healthy time ends.
func (t *Tracker) Unready() { t.readySince = time.Time{} }

// Healthy forgets the failures and resets the breaker's interval if the process has now been ready for ResetAfter
// without a break (GW-6: reset after 60 s healthy); before that it does nothing. The budget's window moves on by itself.
func (t *Tracker) Healthy(now time.Time) {
	if t.policy.ResetAfter == 0 || t.readySince.IsZero() || now.Sub(t.readySince) < t.policy.ResetAfter {
		return
	}
	t.failures, t.opens = 0, 0
}

// Reset closes the breaker and forgets all failures, because a person or a tool asked for a restart. The floor between
// requested restarts and the lifetime count stay.
func (t *Tracker) Reset() {
	t.breaker, t.failures, t.opens = closed, 0, 0
	t.times = t.times[:0]
}

// Restarts is the number of restarts of any cause over the lifetime; it is never reset (WD-10, restart_count).
func (t *Tracker) Restarts() int { return t.restarts }
