package supervise

import (
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
)

// Spare is a process beside the serving one, as [Snapshot] shows it.
type Spare struct {
	Gen    int
	Ready  bool // it could serve now; otherwise it is coming up
	Stale  bool // it was started before a restart was requested, so it may run old code
	Reload bool // it takes over; otherwise it stands by
}

// spare is one of them with its time.
type spare struct {
	Spare
	by time.Time // it must have come up; of no meaning once it is ready
}

// The waits after a failed standby.
const (
	firstRefill   = time.Second
	longestRefill = time.Minute
)

// doer takes the owner's actions.
type doer interface{ do(a Action) }

// spares owns the processes beside the serving one, keeps their number as configured, and has the reload under way,
// whose process is one of them.
type spares struct {
	out doer

	all    []spare  // the oldest first
	reload *reload  // under way; nil: none is
	anew   bool     // it replaced a reload whose process was coming up
	next   *Restart // noteRequest since, and next: the one under way is not put off again

	replayable bool // the owner can bring one up
	misses     int  // standbys that failed since one came up
	// refillAt is the earliest start of the next standby.
	refillAt time.Time
}

// take removes a spare and returns it; ok is false if there is none of that generation.
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

// markStale marks every standby as stale.
func (s *spares) markStale() {
	for i := range s.all {
		s.all[i].Stale = s.all[i].Stale || !s.all[i].Reload
	}
}

// short reports whether another standby is needed. They start one after the other: a machine that has just lost a
// process must not start several at once.
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
	return s.replayable && fresh < standby
}

// surplus reports whether there are more stale spares than standbys needed. Failing requests must not accumulate them.
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

// setReplayable takes note of whether the owner can bring up spares.
func (s *spares) setReplayable(possible bool) {
	s.replayable = possible
	if possible {
		return
	}
	const why = "the client's handshake is not known any more"
	if s.reload != nil {
		s.reloadFailed(why)
	}
	if s.next != nil {
		s.out.do(ReloadFailed{Gen: -1, Source: s.next.Source, Reason: s.next.Reason, Why: why})
	}
	s.dismissAll()
}

// ready takes note that a spare could serve now.
func (s *spares) ready(gen int) {
	for i := range s.all {
		if one := &s.all[i]; one.Gen == gen {
			one.Ready = true
			s.misses = 0
		}
	}
}

// asked takes note that a spare has until by to come up. It reports whether gen is a spare.
func (s *spares) asked(by time.Time, gen int) bool {
	i := slices.IndexFunc(s.all, func(one spare) bool { return one.Gen == gen })
	if i >= 0 {
		s.all[i].by = by
	}
	return i >= 0
}

// failed takes note that a spare is no more.
func (s *spares) failed(now time.Time, gen int, reason string) {
	switch one, ok := s.take(gen); {
	case !ok:
	case one.Reload:
		s.failReload(gen, reason)
	default:
		wait := min(firstRefill<<min(s.misses, 10), longestRefill) // each time for twice as long
		s.misses++
		s.refillAt = later(s.refillAt, now.Add(wait))
	}
}

// expire dismisses the spares that did not come up in time, with the reason.
func (s *spares) expire(now time.Time, why string) {
	late := func(one spare) bool { return !one.Ready && !now.Before(one.by) }
	for i := slices.IndexFunc(s.all, late); i >= 0; i = slices.IndexFunc(s.all, late) {
		gen := s.all[i].Gen
		s.out.do(Dismiss{gen})
		s.failed(now, gen, why)
	}
}

// dismissAll lets all spares go, and with them a reload under way and the one after it.
func (s *spares) dismissAll() {
	s.dismiss(func(Spare) bool { return true })
	s.endReload()
	s.next = nil
}

func (s *spares) dismiss(unwanted func(Spare) bool) {
	s.all = slices.DeleteFunc(s.all, func(one spare) bool {
		if unwanted(one.Spare) {
			s.out.do(Dismiss{one.Gen})
			return true
		}
		return false
	})
}

// due is the next deadline; zero: none. serving says that a process serves, standby how many spares are needed.
func (s *spares) due(serving bool, standby int) time.Time {
	var due time.Time
	for _, one := range s.all {
		if !one.Ready {
			due = deadline.Earliest(due, one.by)
		}
	}
	switch {
	case !serving:
	case s.reload != nil:
		due = deadline.Earliest(due, s.reload.at)
	case s.short(standby):
		due = deadline.Earliest(due, s.refillAt)
	}
	return due
}

// reconcile does what is due beside a serving process: a ready reload takes over, a waiting one begins, unneeded stale
// spares are dismissed, and missing ones are started. In any other state all of that waits: nothing must disturb the
// start, and the spares may be needed.
func (m *Machine) reconcile(now time.Time) {
	if m.state != Serving {
		return
	}
	if s, ok := m.beside.find(func(s Spare) bool { return s.Reload && s.Ready }); ok {
		m.why.because(Requested, m.beside.reload.source, m.beside.reload.reason)
		m.takeOver(now, s, m.gen, false)
	}
	if next := m.beside.next; next != nil && m.beside.reload == nil { // it was requested while another one was coming up
		m.beside.next = nil
		m.markStale(*next)
		m.beginReload(now, *next)
	}
	if _, covered := m.beside.find(fresh); covered || !m.stale {
		m.beside.dismiss(func(s Spare) bool { return s.Stale })
	}
	if m.beside.surplus(m.opts.Standby) {
		m.beside.dismiss(func(s Spare) bool { return s.Stale && !s.Ready }) // equivalent to the ready ones, but later
	}
	if r := m.beside.reload; r != nil {
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

// fresh reports whether a spare that stands by can serve now and runs no old code.
func fresh(s Spare) bool { return s.Ready && !s.Stale && !s.Reload }

// later returns the later time.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
