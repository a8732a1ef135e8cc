package supervise

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
)

// Machine is the state of one supervised process. Use [New].
type Machine struct {
	opts    Options
	tracker *backoff.Tracker

	state State
	since time.Time
	// stopSequence's gen is that of the process that serves, is to serve or was the last to do so; -1: there was none. Its at
	// is when the state wants to be woken; zero: it does not. What for depends on the state: Starting has its timeout,
	// Serving becomes healthy, Stopping takes the next stop step, Backoff and Failed start the next process.
	stopSequence
	last        int // the highest generation so far, spares included
	beside      spares
	lastRequest Restart // the last one for another process than those that had been started
	stale       bool    // the serving process was started before that

	why  endCause // of the process that is being dealt with
	exit Exited   // the same

	stop    bool     // no further process is to be started
	over    bool     // Finish was returned
	asked   bool     // the next transition is what somebody asked for while no process ran
	broken  bool     // Failed since a process last came up
	pending *Restart // noteRequest while the process was ending for another reason
	// throttled: in Backoff, the floor between two requested restarts is waited for, and pause after that.
	throttled bool
	pause     time.Duration
	needed    bool // somebody came for the process while it was ending; of interest if it was to sleep
}

// New returns a machine that waits for [Start].
func New(opts Options) *Machine {
	opts = opts.withDefaults()
	m := &Machine{opts: opts, tracker: backoff.NewTracker(opts.Backoff), stopSequence: stopSequence{gen: -1}, last: -1}
	m.beside.out = &m.stopSequence
	return m
}

// Step takes an event and returns what to do about it. rnd in [0,1) is for the jitter. The slice is valid until the
// next call of Step or Tick.
func (m *Machine) Step(now time.Time, rnd float64, ev Event) []Action {
	m.out = m.out[:0]
	if m.over {
		return nil
	}
	switch ev := ev.(type) {
	case Introduced:
		m.beside.introduce(ev.Possible)
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

// Tick does what is due at now, if anything. It is valid at any time, and the result as long as that of [Machine.Step].
func (m *Machine) Tick(now time.Time, rnd float64) []Action {
	m.out = m.out[:0]
	m.beside.expire(now, m.opts.timeout())
	if !m.at.IsZero() && !now.Before(m.at) {
		m.at = time.Time{}
		m.due(now)
	}
	m.reconcile(now)
	return m.out
}

// due does what the state wanted to be woken for.
func (m *Machine) due(now time.Time) {
	switch m.state {
	case Starting:
		m.why.because(StartFail, NoSource, m.opts.timeout())
		m.enter(now, Stopping, Report{})
		m.kill()
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
	return sooner(m.at, m.beside.due(m.state == Serving, m.opts.Standby))
}

// Restarts is the number of restarts of any cause so far, one that is waited for included (WD-10).
func (m *Machine) Restarts() int { return m.tracker.Restarts() }

// Snapshot is what a machine shows of itself.
type Snapshot struct {
	State      State
	Since      time.Time // of the last transition; zero: there was none
	Generation int       // of the process that serves, is to serve or was the last to do so; -1: there was none
	Restarts   int       // lifetime, of any cause
	Spares     []Spare   // the processes beside that one, the oldest first; those that are retired are not among them

	// Cause, Source and Reason say why the process is ending or has ended. While it is Starting or Serving there is
	// none: why it was started is what its Spawn said.
	Cause  Cause
	Source Source
	Reason string
	// Planned: that end is not a failure of the process, so what was in flight is not suspected of having caused it.
	Planned bool

	NextTry time.Time // of the next start in Backoff and Failed; zero: none by itself
	Asleep  bool      // no process runs because none was needed any more: Start starts one
	Over    bool      // Finish was returned
}

// Snapshot returns how things stand.
func (m *Machine) Snapshot() Snapshot {
	s := Snapshot{
		State: m.state, Since: m.since, Generation: m.gen, Restarts: m.Restarts(),
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
	if to == Sweeping || m.state == Sweeping {
		r.Code, r.Signalled = m.exit.Code, m.exit.Signalled
	}
	m.state, m.since, m.at = to, now, time.Time{}
	m.throttled, m.pause = false, 0
	m.do(r)
}

// State returns where things stand.
func (m *Machine) State() State { return m.state }

// Unasked reports whether a process runs and nobody has asked it to show that it is up.
func (m *Machine) Unasked() bool { return m.state == Starting && m.at.IsZero() }

// Reloading reports whether a planned restart beside the serving process is under way or waits for its time.
func (m *Machine) Reloading() bool { return m.beside.reload != nil }

// Newest is the highest generation so far, spares included; -1: there was none. What is started from now on has a higher
// one.
func (m *Machine) Newest() int { return m.last }

// Generation is that of the process that serves, is to serve or was the last to do so, no spare's; -1: there was none.
func (m *Machine) Generation() int { return m.gen }
