package supervise

import "time"

// whileSweeping takes an event while a dead process is being cleared away.
func (m *Machine) whileSweeping(now time.Time, rnd float64, ev Event) {
	switch ev := ev.(type) {
	case TreeGone:
		m.decide(now, rnd, 0)
	case Start:
		m.needed = true
	case Restart:
		m.remember(ev)
	case Stop:
		m.stop = true
	}
}

// whileDown takes an event while no process runs and the next one is waited for. A request to replace the process changes
// nothing: the next one is a fresh one.
func (m *Machine) whileDown(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Stop:
		m.finish(now)
	case Restart:
		m.restartFromNothing(now, ev)
	}
}

// restartFromNothing starts the process that is requested while none runs. A request of the dead process itself comes too late, and
// one request is enough.
func (m *Machine) restartFromNothing(now time.Time, ev Restart) {
	if ev.Cause != Requested || ev.Source.own() || m.why.cause == Requested {
		return
	}
	m.why, m.asked = endCause{Requested, ev.Source, ev.Reason}, true
	m.tracker.Reset()
	delay, throttled := m.tracker.Requested(now)
	// The pause lets a process that has just ended clear away; here it has long been gone.
	m.wait(now, delay-m.tracker.Policy().RequestPause, 0, throttled)
}

// respawnAfter is the pause after a start that was not possible at all, whatever the delays are: without it the owner
// would only retry.
const respawnAfter = 50 * time.Millisecond

// decide says what follows when nothing is left of a process. After a crash the next one is started that much later at least.
func (m *Machine) decide(now time.Time, rnd float64, least time.Duration) {
	switch {
	case m.stop:
		m.finish(now)
		return
	case m.why.cause == Idle:
		m.slept(now)
		return
	case m.beside.next != nil && m.beside.reload == nil: // the process that follows is new enough for it
		m.remember(*m.beside.next)
		m.beside.next = nil
	}
	m.anew = m.anew && m.why.cause == Requested
	if m.later != nil { // that process is new enough for it, too
		m.remember(*m.later)
		m.later = nil
	}
	if p := m.pending; p != nil && !restarts(m.why.cause) {
		m.why = endCause{Requested, p.Source, p.Reason}
	}
	if r := m.beside.reload; r != nil && !r.silent && (m.why.cause == Clean || m.why.cause == Misconfigured) {
		m.why = endCause{Requested, r.source, r.reason} // asked for before it ended by itself
	}
	switch {
	case m.why.cause == Clean:
		m.finish(now)
	case m.why.cause == Requested:
		if !m.why.source.own() {
			m.tracker.Reset()
		}
		if m.why.source != SourceLimit {
			m.markStale(Restart{Cause: Requested, Source: m.why.source, Reason: m.why.reason})
		}
		delay, throttled := m.tracker.Requested(now)
		m.follow(now, delay, throttled)
	case m.why.cause.crash():
		delay, open := m.tracker.Crash(now, rnd)
		if open {
			m.fail(now, delay)
		} else {
			if _, ok := m.successor(); !ok {
				delay = max(delay, least)
			}
			m.follow(now, delay, false)
		}
	case m.why.cause == Misconfigured:
		m.fail(now, 0)
	default:
		m.beside.dismissAll()
		m.spawn(now)
	}
}

// follow lets a spare take the place of a process that is gone, or starts another after delay.
func (m *Machine) follow(now time.Time, delay time.Duration, throttled bool) {
	if s, ok := m.successor(); ok {
		m.succeed(now, s, delay)
		return
	}
	if r := m.beside.reload; r != nil && !r.silent {
		// A restart was promised for that time; it is the same one now.
		delay = min(delay, r.at.Sub(now))
	}
	pause := time.Duration(0)
	if m.why.cause == Requested {
		pause = min(delay, m.tracker.Policy().RequestPause)
	}
	m.beside.dismissAll()
	m.wait(now, delay-pause, pause, throttled)
}

// wait starts the next process after delay and then pause. Throttled means that the delay is the floor between two
// requested restarts: the restart is reported after it.
func (m *Machine) wait(now time.Time, delay, pause time.Duration, throttled bool) {
	m.pending = nil
	switch {
	case throttled && delay > 0:
		m.enter(now, Backoff, Report{Delay: delay, Throttled: true})
		m.at, m.pause, m.throttled = now.Add(delay), pause, true
	case delay+pause > 0:
		m.enter(now, Backoff, Report{Delay: delay + pause})
		m.at = now.Add(delay + pause)
	default:
		m.spawn(now)
	}
}

// release goes on when the floor between two requested restarts has passed.
func (m *Machine) release(now time.Time) {
	pause := m.pause
	m.enter(now, Backoff, Report{Delay: pause, Released: true})
	if pause <= 0 {
		m.spawn(now)
		return
	}
	m.at = now.Add(pause)
}

// fail gives up, for delay or, if that is 0, until a restart is requested.
func (m *Machine) fail(now time.Time, delay time.Duration) {
	m.pending = nil
	m.broken = true
	m.beside.dismissAll()
	m.enter(now, Failed, Report{Delay: delay})
	if delay > 0 {
		m.at = now.Add(delay)
	}
}

// spawn starts the next process.
func (m *Machine) spawn(now time.Time) {
	m.gen, m.stale = m.nextGen(), false
	m.tracker.Started(now)
	m.enter(now, Starting, Report{})
	m.do(Spawn{Gen: m.gen, Cause: m.why.cause, Source: m.why.source, Reason: m.why.reason})
	m.begun()
}

// begun forgets why the last process ended: the next one has its place.
func (m *Machine) begun() {
	m.why = endCause{}
	m.stopStep, m.pending, m.needed = notStopping, nil, false
}

// nextGen returns the generation of a process that is to be started.
func (m *Machine) nextGen() int {
	m.last++
	return m.last
}

// finish ends everything: no restart follows, and the report says so.
func (m *Machine) finish(now time.Time) { m.finishWith(now, 0) }

// finishWith ends it all with an exit status.
func (m *Machine) finishWith(now time.Time, status int) {
	m.beside.dismissAll()
	if m.why.cause != Clean {
		m.why = endCause{Shutdown, NoSource, "shut down"}
	}
	m.enter(now, Stopped, Report{})
	m.over = true
	m.do(Finish{status})
}
