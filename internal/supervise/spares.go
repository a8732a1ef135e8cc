package supervise

import (
	"slices"
	"time"
)

// Spare is a process beside the serving one, as [Snapshot] shows it.
type Spare struct {
	Gen    int
	Ready  bool // it could serve now; otherwise it is coming up
	Stale  bool // it was started before a restart was wished, so it may run old code
	Reload bool // it is there to take over; otherwise it stands by
}

// spare is one of them with its time.
type spare struct {
	Spare
	by time.Time // it must have come up; of no meaning once it is ready
}

// The waits before a spare that stands by is tried again after one has failed.
const (
	firstRefill   = time.Second
	longestRefill = time.Minute
)

// spares are the processes beside the serving one, and what it takes to have as many as are wanted.
type spares struct {
	all []spare // the oldest first

	introduced bool // the owner can bring one up
	misses     int  // spares that stood by and failed since one came up
	// refillAt is when the next one that stands by may be started at the earliest.
	refillAt time.Time
}

// take removes a spare and returns it; ok is false when there is none of that generation.
func (s *spares) take(gen int) (taken spare, ok bool) {
	i := slices.IndexFunc(s.all, func(one spare) bool { return one.Gen == gen })
	if i < 0 {
		return spare{}, false
	}
	taken = s.all[i]
	s.all = slices.Delete(s.all, i, i+1)
	return taken, true
}

// find returns the oldest spare that is wanted.
func (s *spares) find(wanted func(Spare) bool) (found spare, ok bool) {
	for _, one := range s.all {
		if wanted(one.Spare) {
			return one, true
		}
	}
	return spare{}, false
}

// outdate makes every spare that stands by a stale one.
func (s *spares) outdate() {
	for i := range s.all {
		s.all[i].Stale = s.all[i].Stale || !s.all[i].Reload
	}
}

// missed puts the next try off, each time for twice as long.
func (s *spares) missed(now time.Time) {
	wait := min(firstRefill<<min(s.misses, 10), longestRefill)
	s.misses++
	s.refillAt = later(s.refillAt, now.Add(wait))
}

// short reports whether one more that stands by is wanted. They come up one after the other: a machine that has just
// lost a process has other things to do than to start several.
func (s *spares) short(standby int) bool {
	fresh := 0
	for _, one := range s.all {
		switch {
		case one.Reload:
		case !one.Ready:
			return false
		case !one.Stale:
			fresh++
		}
	}
	return s.introduced && fresh < standby
}

// surplus reports whether there are more stale spares than should stand by. Wishes that come to nothing must not leave
// more and more of them behind.
func (s *spares) surplus(standby int) bool {
	stale := 0
	for _, one := range s.all {
		if one.Stale {
			stale++
		}
	}
	return stale > standby
}

// show returns them as a snapshot has them.
func (s *spares) show() []Spare {
	var all []Spare
	for _, one := range s.all {
		all = append(all, one.Spare)
	}
	return all
}

// introduce takes note of whether the owner can bring up spares.
func (m *Machine) introduce(possible bool) {
	m.beside.introduced = possible
	if possible {
		return
	}
	const why = "the client's handshake is not known any more"
	if m.reload != nil {
		m.reloadFailed(why)
	}
	if m.next != nil {
		m.do(ReloadFailed{Gen: -1, Source: m.next.Source, Reason: m.next.Reason, Why: why})
	}
	m.dismissAll()
}

// spareReady takes note that a spare could serve now.
func (m *Machine) spareReady(gen int) {
	for i := range m.beside.all {
		if s := &m.beside.all[i]; s.Gen == gen {
			s.Ready = true
			m.beside.misses = 0
		}
	}
}

// spareFailed takes note that a spare is no more.
func (m *Machine) spareFailed(now time.Time, gen int, reason string) {
	switch s, ok := m.beside.take(gen); {
	case !ok:
	case s.Reload:
		m.failReload(gen, reason)
	default:
		m.beside.missed(now)
	}
}

// expire dismisses the spares that have had their time to come up.
func (m *Machine) expire(now time.Time) {
	late := func(s spare) bool { return !s.Ready && !now.Before(s.by) }
	for i := slices.IndexFunc(m.beside.all, late); i >= 0; i = slices.IndexFunc(m.beside.all, late) {
		gen := m.beside.all[i].Gen
		m.do(Dismiss{gen})
		m.spareFailed(now, gen, m.timeout())
	}
}

// dismissAll lets all spares go, and with them a reload under way and the one after it.
func (m *Machine) dismissAll() {
	m.dismiss(func(Spare) bool { return true })
	m.endReload()
	m.next = nil
}

func (m *Machine) dismiss(unwanted func(Spare) bool) {
	m.beside.all = slices.DeleteFunc(m.beside.all, func(s spare) bool {
		if unwanted(s.Spare) {
			m.do(Dismiss{s.Gen})
			return true
		}
		return false
	})
}

// settle does what is due beside a serving process: a reload whose process is ready takes over, one that has waited
// begins, stale spares are not kept longer than needed, and missing ones are started. In any other state all of that
// waits: nothing is to disturb the way up, and the spares there are may be needed.
func (m *Machine) settle(now time.Time) {
	if m.state != Serving {
		return
	}
	if s, ok := m.beside.find(func(s Spare) bool { return s.Reload && s.Ready }); ok {
		m.because(Requested, m.reload.source, m.reload.reason)
		m.takeOver(now, s, m.gen, false)
	}
	if m.next != nil && m.reload == nil {
		m.beginNext(now)
	}
	if _, covered := m.beside.find(fresh); covered || !m.stale {
		m.dismiss(func(s Spare) bool { return s.Stale })
	}
	if m.beside.surplus(m.opts.Standby) {
		m.dismiss(func(s Spare) bool { return s.Stale && !s.Ready }) // as good as those that stand ready, and later
	}
	if r := m.reload; r != nil {
		if r.waits() && !now.Before(r.at) {
			m.startReload(now)
		}
		return
	}
	if m.beside.short(m.opts.Standby) && !now.Before(m.beside.refillAt) {
		m.spawnSpare(now, SpawnSpare{})
	}
}

// spawnSpare starts a process beside the serving one.
func (m *Machine) spawnSpare(now time.Time, a SpawnSpare) {
	a.Gen = m.nextGen()
	m.beside.all = append(m.beside.all, spare{Spare: Spare{Gen: a.Gen, Reload: a.Reload}, by: now.Add(m.opts.StartTimeout)})
	m.do(a)
}

// besideDue is when something beside the serving process is due; zero: nothing is.
func (m *Machine) besideDue() time.Time {
	var due time.Time
	for _, s := range m.beside.all {
		if !s.Ready {
			due = sooner(due, s.by)
		}
	}
	switch {
	case m.state != Serving:
	case m.reload != nil:
		due = sooner(due, m.reload.at)
	case m.beside.short(m.opts.Standby):
		due = sooner(due, m.beside.refillAt)
	}
	return due
}

// fresh reports whether a spare that stands by can serve now and runs no old code.
func fresh(s Spare) bool { return s.Ready && !s.Stale && !s.Reload }

// sooner returns the earlier time; zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// later returns the later time.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
