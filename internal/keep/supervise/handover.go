package supervise

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
)

// Saved is a [Machine] with one process that serves, or has been asked nothing yet, and nothing beside it, in a form that can be kept as JSON: another image
// of the same program goes on with it.
type Saved struct {
	Tracker backoff.Saved

	Starting bool // the process runs and nobody has asked it to show that it is up
	Since    time.Time
	At       time.Time // the process counts as healthy
	Gen      int
	Last     int

	Introduced bool
	Misses     int
	RefillAt   time.Time

	Wish   Restart
	Stale  bool
	Broken bool
	Asked  bool
}

// Restarts is that of [Machine.Restarts].
func (s Saved) Restarts() int { return s.Tracker.Restarts }

// Save returns all that m knows. ok is false where that cannot be carried over: no process serves, one is being ended,
// or there is another beside it or about to be started.
func (m *Machine) Save() (s Saved, ok bool) {
	idle := m.unasked()
	if m.state != Serving && !idle || len(m.beside.all) > 0 || m.beside.reload != nil || m.stop || m.over {
		return Saved{}, false
	}
	return Saved{
		Tracker:  m.tracker.Save(),
		Starting: idle, Since: m.since, At: m.at, Gen: m.gen, Last: m.last,
		Introduced: m.beside.introduced, Misses: m.beside.misses, RefillAt: m.beside.refillAt,
		Wish: m.lastRequest, Stale: m.stale, Broken: m.broken, Asked: m.asked,
	}, true
}

// Restore returns a machine that goes on where the one that was saved stood. The options may be others.
func Restore(opts Options, s Saved) *Machine {
	m := New(opts)
	m.tracker = backoff.Restore(m.opts.Backoff, s.Tracker)
	if m.state, m.since = Serving, s.Since; s.Starting {
		m.state = Starting
	}
	m.gen, m.at, m.last = s.Gen, s.At, s.Last
	m.beside.introduced, m.beside.misses, m.beside.refillAt = s.Introduced, s.Misses, s.RefillAt
	m.lastRequest, m.stale, m.broken, m.asked = s.Wish, s.Stale, s.Broken, s.Asked
	return m
}

// Reloading reports whether a planned restart beside the serving process is under way or waits for its time.
func (m *Machine) Reloading() bool { return m.beside.reload != nil }
