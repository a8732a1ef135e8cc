package supervise

import "time"

// takeOver makes a spare the serving process. old is the one that served and lives; -1: it is gone.
func (m *Machine) takeOver(now time.Time, s spare, old int, atOnce bool) {
	m.beside.take(s.Gen)
	m.gen, m.stale = s.Gen, s.Stale
	if s.Reload {
		m.beside.endReload()
		// The cause of failing spares may be fixed in this process.
		m.beside.misses, m.beside.refillAt = 0, time.Time{}
	}
	m.tracker.Started(now)
	if s.Ready {
		m.serve(now, Report{AtOnce: atOnce})
	} else {
		m.enter(now, Starting, Report{})
		m.at = s.by
	}
	m.do(TakeOver{Gen: s.Gen, Old: old, Ready: s.Ready})
	m.begun()
}

// succeed replaces a process that is gone by a spare. delay is the tracker's: nobody has to wait now, so it applies to
// the next start. If the spare may run old code, that is the start of a process with new code.
func (m *Machine) succeed(now time.Time, s spare, delay time.Duration) {
	next := now.Add(delay)
	if m.why.cause == Requested {
		next = next.Add(-m.tracker.Policy().RequestPause) // nothing has to clear away that has not gone already
	}
	m.takeOver(now, s, -1, false)
	m.beside.refillAt = later(m.beside.refillAt, next)
	if m.stale && m.beside.reload == nil {
		m.beside.reload = &reload{source: m.lastRequest.Source, reason: m.lastRequest.Reason, at: next, silent: true}
	}
}

// successor returns the spare to replace a process that is gone: one that can serve at once, else one that can soonest.
// A process that requested its restart is not replaced by one with old code.
func (m *Machine) successor() (spare, bool) {
	for _, wanted := range []func(Spare) bool{
		func(s Spare) bool { return s.Ready && s.Reload },
		fresh,
		func(s Spare) bool { return s.Ready },
		func(s Spare) bool { return s.Reload },
		func(Spare) bool { return m.why.cause != Requested },
	} {
		if s, ok := m.beside.find(wanted); ok {
			return s, true
		}
	}
	return spare{}, false
}

// lost handles the end of a process that took over before its owner could report its failure as a spare.
func (m *Machine) lost(now time.Time, rnd float64, reason string) {
	switch m.state {
	case Starting:
		m.why.because(StartFail, NoSource, reason)
	case Serving, Stopping:
		m.why.because(Crash, NoSource, reason)
	default:
		return
	}
	m.enter(now, Sweeping, Report{})
	m.decide(now, rnd, 0)
}
