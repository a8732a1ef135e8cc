package supervise

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/backoff"
)

// Machine is the state of one supervised process. Use [New].
type Machine struct {
	opts    Options
	tracker *backoff.Tracker

	state State
	gen   int // of the last process; -1: there was none
	since time.Time
	// at is when the state wants to be woken; zero: it does not. What for depends on the state: Starting has its
	// timeout, Serving becomes healthy, Stopping takes the next rung, Backoff and Failed start the next process.
	at time.Time

	cause  Cause
	source Source
	reason string
	exit   Exited // of the process that is being dealt with

	rung    rung
	stop    bool     // no further process is to be started
	over    bool     // Finish was returned
	asked   bool     // the next transition is what somebody asked for while no process ran
	broken  bool     // Failed since a process last came up
	pending *Restart // wished while the process was ending for another reason

	out []Action
}

// New returns a machine that waits for [Start].
func New(opts Options) *Machine {
	opts = opts.withDefaults()
	return &Machine{opts: opts, tracker: backoff.NewTracker(opts.Backoff), gen: -1}
}

// Step takes an event and returns what to do about it. rnd in [0,1) is for the jitter. The slice is valid until the
// next call of Step or Tick.
func (m *Machine) Step(now time.Time, rnd float64, ev Event) []Action {
	m.out = m.out[:0]
	if gen, ok := ev.about(); m.over || ok && gen != m.gen {
		return nil
	}
	switch m.state {
	case Stopped:
		m.whileStopped(now, ev)
	case Starting:
		m.whileStarting(now, rnd, ev)
	case Serving:
		m.whileServing(now, ev)
	case Stopping:
		m.whileStopping(now, ev)
	case Sweeping:
		m.whileSweeping(now, rnd, ev)
	case Backoff, Failed:
		m.whileDown(now, ev)
	}
	return m.out
}

// Tick does what is due at now, if anything. It is valid at any time, and the result as long as that of [Machine.Step].
func (m *Machine) Tick(now time.Time, rnd float64) []Action {
	m.out = m.out[:0]
	if m.at.IsZero() || now.Before(m.at) {
		return nil
	}
	m.at = time.Time{}
	switch m.state {
	case Starting:
		m.because(StartFail, NoSource, "no answer to the handshake within "+m.opts.StartTimeout.String())
		m.enter(now, Stopping, Report{})
		m.kill()
	case Serving:
		m.tracker.Healthy(now)
	case Stopping:
		m.nextRung(now)
	case Backoff, Failed:
		m.spawn(now)
	}
	return m.out
}

// Deadline returns when [Machine.Tick] is to be called; the zero time means not at all.
func (m *Machine) Deadline() time.Time { return m.at }

// Restarts is the number of restarts of any cause so far, one that is waited for included (S0 4.4).
func (m *Machine) Restarts() int { return m.tracker.Restarts() }

// Snapshot is what a machine shows of itself.
type Snapshot struct {
	State      State
	Since      time.Time // of the last transition; zero: there was none
	Generation int       // of the last process; -1: there was none
	Restarts   int       // lifetime, of any cause

	// Cause, Source and Reason say why the process is ending or has ended. While it is Starting or Serving there is
	// none: why it was started is what its Spawn said.
	Cause  Cause
	Source Source
	Reason string
	// Planned: that end is no failure of the process, so what was in flight is not suspected of having caused it.
	Planned bool

	NextTry time.Time // of the next start in Backoff and Failed; zero: none by itself
	Over    bool      // Finish was returned
}

// Snapshot returns how things stand.
func (m *Machine) Snapshot() Snapshot {
	s := Snapshot{
		State: m.state, Since: m.since, Generation: m.gen, Restarts: m.tracker.Restarts(),
		Cause: m.cause, Source: m.source, Reason: m.reason, Planned: m.cause.planned(), Over: m.over,
	}
	if m.state == Backoff || m.state == Failed {
		s.NextTry = m.at
	}
	return s
}

func (m *Machine) do(a Action) { m.out = append(m.out, a) }

// enter is the only place where the state changes. Every deadline belongs to a state and ends with it.
func (m *Machine) enter(now time.Time, to State, r Report) {
	r.From, r.To, r.Asked = m.state, to, m.asked
	m.asked = false
	r.Gen, r.Restarts = m.gen, m.tracker.Restarts()
	r.Cause, r.Source, r.Reason = m.cause, m.source, m.reason
	if to == Sweeping || m.state == Sweeping {
		r.Code, r.Signalled = m.exit.Code, m.exit.Signalled
	}
	m.state, m.since, m.at = to, now, time.Time{}
	m.do(r)
}

// because notes why the process ends. The first reason wins.
func (m *Machine) because(c Cause, s Source, reason string) {
	if m.cause == NoCause {
		m.cause, m.source, m.reason = c, s, reason
	}
}

// State returns where things stand.
func (m *Machine) State() State { return m.state }

// Generation is that of the last process; -1: there was none.
func (m *Machine) Generation() int { return m.gen }
