package supervise

import "time"

// reload is a planned restart beside the process that serves meanwhile. There is one at most.
type reload struct {
	source Source
	reason string
	at     time.Time     // its process is to be started; zero: it has been
	held   time.Duration // by the floor between two requested restarts
	silent bool          // it has been told of already
}

// waits reports whether the reload's process has not been started.
func (r *reload) waits() bool { return !r.at.IsZero() }

// wished takes note of a wish before the state deals with it, for what there is beside the serving process.
func (m *Machine) wished(ev Restart) {
	switch {
	case ev.Cause == Replace || ev.Cause == ProbeExit:
		// The owner wants a process that nothing has been said to.
		m.dismissAll()
	case ev.Cause != Requested || ev.Source == SourceLimit:
	case m.overlaps(ev) && m.reload != nil && m.reload.waits() && !m.reload.silent:
		m.outdate(ev) // its process, once it is started, will be new enough
	default:
		m.cancelReload()
		m.outdate(ev)
	}
}

// overlaps reports whether a wish is fulfilled beside the serving process.
func (m *Machine) overlaps(ev Restart) bool {
	return m.state == Serving && ev.Cause == Requested && ev.Overlap
}

// outdate makes everything that has been started run old code as far as the machine knows.
func (m *Machine) outdate(by Restart) {
	m.beside.outdate()
	m.stale, m.wish = true, by
}

// beginReload begins a planned restart beside the serving process.
func (m *Machine) beginReload(now time.Time, ev Restart) {
	if !ev.Source.own() {
		m.tracker.Reset()
	}
	if m.reload != nil {
		if ev.Source != SourceLimit {
			m.reload.source, m.reload.reason = ev.Source, ev.Reason
		}
		return
	}
	delay, throttled := m.tracker.Requested(now)
	delay -= m.tracker.Policy().RequestPause // that lets a process clear away that has just ended; here none has
	if s, ok := m.beside.find(fresh); ok && ev.Source == SourceLimit {
		m.because(Requested, ev.Source, ev.Reason)
		m.takeOver(now, s, m.gen, true)
		m.beside.refillAt = later(m.beside.refillAt, now.Add(delay))
		return
	}
	m.tracker.Ready(m.since) // the process that serves is still as healthy as before
	m.reload = &reload{source: ev.Source, reason: ev.Reason, at: now.Add(delay)}
	if throttled {
		m.reload.held = delay
	}
}

// startReload starts the process of a reload.
func (m *Machine) startReload(now time.Time) {
	r := m.reload
	r.at = time.Time{}
	m.tracker.Started(now)
	m.tracker.Ready(m.since) // the process that serves is still as healthy as before
	m.spawnSpare(now, SpawnSpare{
		Reload: true, Cause: Requested, Source: r.source, Reason: r.reason, Throttled: r.held, Silent: r.silent,
	})
}

// cancelReload forgets a reload under way: a newer wish takes its place.
func (m *Machine) cancelReload() {
	m.dismiss(func(s Spare) bool { return s.Reload })
	m.reload = nil
}

// reloadFailed ends a reload under way that can come to nothing, whether or not its process has been started.
func (m *Machine) reloadFailed(why string) {
	gen := -1
	if s, ok := m.beside.find(func(s Spare) bool { return s.Reload }); ok {
		gen = s.Gen
		m.beside.take(gen)
		m.do(Dismiss{gen})
	}
	m.failReload(gen, why)
}

// failReload tells that a reload has come to nothing; its process is no spare any more.
func (m *Machine) failReload(gen int, why string) {
	m.do(ReloadFailed{Gen: gen, Source: m.reload.source, Reason: m.reload.reason, Why: why})
	m.reload = nil
}
