package supervise

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/keep/backoff"
)

// Machine is the state of one supervised process. Use [New].
type Machine struct {
	opts    Options
	tracker *backoff.Tracker

	state  State
	since  time.Time
	stands time.Time // see Snapshot
	// stopSequence's gen is that of the process that serves, is to serve or was the last to do so; -1: none. Its at is
	// the state's deadline; zero: none. Its meaning depends on the state: Starting has its timeout, Serving becomes
	// healthy, Stopping takes the next stop step, Backoff and Failed start the next process.
	stopSequence
	last        int // the highest generation so far, spares included
	beside      spares
	lastRequest Restart // the last one for another process than those that had been started
	stale       bool    // the serving process was started before that

	why endCause // of the process that is being dealt with

	up      bool     // the process has come up, and was not asked anew since
	stop    bool     // no further process is to be started
	over    bool     // Finish was returned
	asked   bool     // the next transition was requested while no process ran
	broken  bool     // Failed since a process last came up
	pending *Restart // noteRequest while the process was ending for another reason
	anew    bool     // the process that starts was requested in place of another one that was starting
	later   *Restart // noteRequest since, and begun once that one is up
	// throttled: in Backoff, the floor between two requested restarts is waited for, and pause after that.
	throttled bool
	pause     time.Duration
	needed    bool // the process was needed again while it was being stopped for idleness
}

// New returns a machine that waits for [Start].
func New(opts Options) *Machine {
	opts = opts.withDefaults()
	m := &Machine{opts: opts, tracker: backoff.NewTracker(opts.Backoff), stopSequence: stopSequence{gen: -1}, last: -1}
	m.beside.out = &m.stopSequence
	return m
}

// Step takes an event and returns the actions. rnd in [0,1) is for the jitter. The slice is valid until the next call of
// Step or Tick.
func (m *Machine) Step(now time.Time, rnd float64, ev Event) []Action {
	m.out = m.out[:0]
	if m.over {
		return nil
	}
	switch ev := ev.(type) {
	case Replayable:
		m.beside.setReplayable(ev.Possible)
	case SpareReady:
		if ev.Gen != m.gen {
			m.beside.ready(ev.Gen)
		} else if m.state == Starting {
			m.whileStarting(now, rnd, Ready(ev)) // it took over before its owner could tell
		}
	case SpareFailed:
		if ev.Gen != m.gen {
			m.beside.failed(now, ev.Gen, ev.Reason)
		} else {
			m.lost(now, rnd, ev.Reason)
		}
	case Handshake:
		if !m.beside.asked(now.Add(m.opts.StartTimeout), ev.Gen) {
			m.serving(now, rnd, ev)
		}
	default:
		m.serving(now, rnd, ev)
	}
	m.reconcile(now)
	return m.out
}

// serving handles events of the serving process, and requests.
func (m *Machine) serving(now time.Time, rnd float64, ev Event) {
	if gen, ok := ev.about(); ok && gen != m.gen {
		return
	}
	switch ev := ev.(type) {
	case Restart:
		m.noteRequest(ev)
	case Stop:
		m.beside.dismissAll()
	}
	switch m.state {
	case Stopped:
		if m.asleep() {
			m.whileAsleep(now, ev)
		} else {
			m.whileStopped(now, ev)
		}
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
}

// Tick does what is due at now, if anything. It is valid at any time, its result as long as that of [Machine.Step].
func (m *Machine) Tick(now time.Time, rnd float64) []Action {
	m.out = m.out[:0]
	m.beside.expire(now, m.opts.timeout())
	if !m.at.IsZero() && !now.Before(m.at) {
		m.at = time.Time{}
		m.due(now)
	}
	if m.begins() {
		ev := *m.later
		ev.Overlap = ev.Overlap && m.beside.replayable
		m.whileServing(now, ev)
	}
	m.reconcile(now)
	return m.out
}

// due does what the state's deadline is for.
func (m *Machine) due(now time.Time) {
	switch m.state {
	case Starting:
		m.why.because(StartFail, NoSource, m.opts.timeout())
		m.enter(now, Stopping, Report{})
		m.leave(now, m.grace(restartGrace))
	case Serving:
		m.tracker.Healthy(now)
	case Stopping:
		m.nextStep(now)
	case Backoff, Failed:
		if m.throttled {
			m.release(now)
			return
		}
		m.spawn(now)
	}
}

// Deadline returns when [Machine.Tick] is to be called; the zero time means not at all.
func (m *Machine) Deadline() time.Time {
	if m.begins() {
		return m.since
	}
	return deadline.Earliest(m.at, m.beside.due(m.state == Serving, m.opts.Standby))
}

// Restarts is the number of restarts of any cause so far, one that is waited for included (WD-10).
func (m *Machine) Restarts() int { return m.tracker.Restarts() }

// Snapshot is the visible state of a machine.
type Snapshot struct {
	State State
	Since time.Time // of the last transition; zero: there was none
	// Stands is since when it works, is down or rests: starts that fail in between do not set it anew. Zero: it was never started.
	Stands     time.Time
	Generation int     // of the process that serves, is to serve or was the last to do so; -1: there was none
	Restarts   int     // lifetime, of any cause
	Spares     []Spare // the processes beside that one, the oldest first; those that are retired are not among them

	// Cause, Source and Reason say why the process is ending or has ended; empty while it is Starting or Serving. Why it
	// was started is in its Spawn.
	Cause  Cause
	Source Source
	Reason string
	// Planned: the end is not a failure, so no request in flight is suspected.
	Planned bool

	NextTry time.Time // of the next start in Backoff and Failed; zero: none by itself
	Asleep  bool      // no process runs because none was needed: Start starts one
	Over    bool      // Finish was returned
}

// Snapshot returns the present state.
func (m *Machine) Snapshot() Snapshot {
	s := Snapshot{
		State: m.state, Since: m.since, Stands: m.stands, Generation: m.gen, Restarts: m.Restarts(),
		Cause: m.why.cause, Source: m.why.source, Reason: m.why.reason, Planned: m.why.cause.planned(), Over: m.over,
		Spares: m.beside.show(), Asleep: m.asleep(),
	}
	if m.state == Backoff || m.state == Failed {
		s.NextTry = m.at
		if m.throttled {
			s.NextTry = m.at.Add(m.pause)
		}
	}
	return s
}

// enter is the only place where the state changes. Every deadline belongs to a state and ends with it.
func (m *Machine) enter(now time.Time, to State, r Report) {
	r.From, r.To, r.Asked = m.state, to, m.asked
	m.asked = false
	r.Gen, r.Restarts = m.gen, m.Restarts()
	r.Cause, r.Source, r.Reason = m.why.cause, m.why.source, m.why.reason
	if to != m.state && (to.stands() || m.state.stands()) {
		m.stands = now
	}
	if to == Starting || to == Serving {
		m.up = to == Serving
	}
	m.state, m.since, m.at = to, now, time.Time{}
	m.throttled, m.pause = false, 0
	m.do(r)
}

// grace is Options.graceOf for the process that the state is about.
func (m *Machine) grace(grace time.Duration) time.Duration { return m.opts.graceOf(grace, m.up) }

// State returns the present state.
func (m *Machine) State() State { return m.state }

// Unasked reports whether a process runs that was not asked yet to show that it works.
func (m *Machine) Unasked() bool { return m.state == Starting && m.at.IsZero() }

// Reloading reports whether a planned restart of the serving process is under way or scheduled.
func (m *Machine) Reloading() bool { return m.beside.reload != nil || m.later != nil }

// Newest is the highest generation so far, spares included; -1: none. Later processes have a higher one.
func (m *Machine) Newest() int { return m.last }

// Generation is that of the process that serves, is to serve or was the last to do so, never a spare's; -1: none.
func (m *Machine) Generation() int { return m.gen }
