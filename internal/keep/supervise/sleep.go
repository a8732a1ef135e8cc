package supervise

import "time"

// neededAgain is why a process is started after a sleep.
const neededAgain = "needed again"

// fallAsleep stops an idle process. A restart under way means that it is needed.
func (m *Machine) fallAsleep(now time.Time, ev Sleep) {
	if m.Reloading() {
		return
	}
	m.why.because(Idle, NoSource, ev.Reason)
	m.enter(now, Stopping, Report{})
	m.beside.dismissAll()
	m.leave(now, restartGrace)
}

// slept handles the end of a stopped idle process. If it was needed meanwhile, the next one starts at once.
func (m *Machine) slept(now time.Time) {
	m.enter(now, Stopped, Report{})
	if m.pending != nil {
		m.whileAsleep(now, *m.pending)
	} else if m.needed {
		m.whileAsleep(now, Start{})
	}
}

// asleep reports whether no process runs because none is needed, after at least one start.
func (m *Machine) asleep() bool { return m.state == Stopped && m.why.cause == Idle }

// whileAsleep handles an event while no process is needed.
func (m *Machine) whileAsleep(now time.Time, ev Event) {
	switch ev := ev.(type) {
	case Start:
		m.why.reason = neededAgain
		m.spawn(now)
	case Restart:
		m.restartFromNothing(now, ev)
	case Stop:
		m.finish(now)
	}
}
