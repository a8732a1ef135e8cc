package supervise

import "time"

// reload is a planned restart beside the serving process. There is one at most.
type reload struct {
	source Source
	reason string
	at     time.Time // its process is to be started; zero: it has been
	silent bool      // it was reported already
}

// waits reports whether the reload's process has not been started.
func (r *reload) waits() bool { return !r.at.IsZero() }

// warms reports whether the reload's process has been started and has not come up.
func (r *reload) warms() bool { return r != nil && !r.waits() }

// noteRequest records a request before the state handles it, for the processes beside the serving one.
func (m *Machine) noteRequest(ev Restart) {
	switch {
	case ev.Cause == Replace || ev.Cause == ProbeExit:
		// The owner wants a process that no client has talked to.
		m.beside.dismissAll()
	case ev.Cause != Requested || ev.Source == SourceLimit:
	case m.overlaps(ev) && m.beside.reload != nil && m.beside.reload.waits() && !m.beside.reload.silent:
		m.markStale(ev) // its process, once it is started, will be new enough
	case m.overlaps(ev) && m.beside.reload.warms() && m.beside.anew:
		m.markStale(ev) // constant requests cause constant restarts
	default:
		anew := m.overlaps(ev) && m.beside.reload.warms()
		m.beside.dismiss(func(one Spare) bool { return one.Reload }) // a newer request replaces it
		m.beside.endReload()
		m.beside.next = nil
		m.beside.anew = anew
		m.markStale(ev)
	}
}

// overlaps reports whether a request is fulfilled beside the serving process.
func (m *Machine) overlaps(ev Restart) bool {
	return m.state == Serving && ev.Cause == Requested && ev.Overlap
}

// markStale makes everything that has been started run old code as far as the machine knows.
func (m *Machine) markStale(by Restart) {
	m.beside.markStale()
	m.stale, m.lastRequest = true, by
}

// beginReload begins a planned restart beside the serving process.
func (m *Machine) beginReload(now time.Time, ev Restart) {
	if m.beside.reload != nil {
		m.joinReload(ev)
		return
	}
	if !ev.Source.own() {
		m.tracker.Reset()
	}
	delay, throttled := m.tracker.Requested(now)
	delay -= m.tracker.Policy().RequestPause // the pause lets an ended process release its resources; here none has ended
	if s, ok := m.beside.find(fresh); ok && ev.Source == SourceLimit {
		m.why.because(Requested, ev.Source, ev.Reason)
		m.takeOver(now, s, m.gen, true)
		m.beside.refillAt = later(m.beside.refillAt, now.Add(delay))
		return
	}
	m.tracker.Ready(m.since) // the process that serves is still as healthy as before
	m.beside.reload = &reload{source: ev.Source, reason: ev.Reason, at: now.Add(delay)}
	if throttled {
		m.do(Throttled{Delay: delay})
	}
}

// joinReload lets a request be fulfilled by the reload that waits for its time, or by one that follows on that which is
// coming up: its process has been started already and may have read the old code.
func (m *Machine) joinReload(ev Restart) {
	if !ev.Source.own() {
		m.tracker.Reset()
	}
	switch r := m.beside.reload; {
	case ev.Source == SourceLimit:
	case r.warms():
		m.beside.next = &ev
	default:
		r.source, r.reason = ev.Source, ev.Reason
	}
}

// startReload starts the process of a reload.
func (m *Machine) startReload(now time.Time) {
	r := m.beside.reload
	r.at = time.Time{}
	m.tracker.Started(now)
	m.tracker.Ready(m.since) // the process that serves is still as healthy as before
	m.spawnSpare(now, SpawnSpare{
		Reload: true, Cause: Requested, Source: r.source, Reason: r.reason, Silent: r.silent,
	})
}

// endReload forgets a reload that has ended.
func (s *spares) endReload() { s.reload, s.anew = nil, false }

// reloadFailed ends a reload under way that can come to nothing, whether or not its process has been started.
func (s *spares) reloadFailed(why string) {
	gen := -1
	if one, ok := s.find(func(one Spare) bool { return one.Reload }); ok {
		gen = one.Gen
		s.take(gen)
		s.out.do(Dismiss{gen})
	}
	s.failReload(gen, why)
}

// failReload reports a failed reload; its process is no longer a spare.
func (s *spares) failReload(gen int, why string) {
	s.out.do(ReloadFailed{Gen: gen, Source: s.reload.source, Reason: s.reload.reason, Why: why})
	s.endReload()
}
