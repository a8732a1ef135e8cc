package health

import (
	"fmt"
	"time"
)

const (
	// leap is by how much the two clocks may differ between two Ticks, and how late a Tick may be. More than that
	// means a suspend, a clock that was set, or that outlive did not run. On a loaded machine the delay is smaller.
	leap = 2 * time.Second
	// stopLooks is how many looks in a row may find the process stopped, and continue it, before it is given up.
	stopLooks = 5
	// stopEvery is the time between two of them.
	stopEvery = 2 * time.Second
)

// reading is one moment on both clocks. On Linux and macOS the monotonic clock stops while the machine sleeps.
type reading struct{ mono, wall time.Time }

// read splits a time. If it has no monotonic reading, both clocks are the wall clock.
func read(now time.Time) reading { return reading{now, now.Round(0)} }

// interrupted reports time in which the server could not answer, or outlive could not receive it.
func (w *Watch) interrupted(at reading) bool {
	apart := at.wall.Sub(w.last.wall) - at.mono.Sub(w.last.mono)
	return apart.Abs() > leap || at.mono.Sub(w.deadline) > leap
}

// afresh drops the signs against the server and restarts all waiting times. A probe that is on its way is kept:
// another would not be answered earlier.
func (w *Watch) afresh(now time.Time) {
	w.tally, w.rounds, w.waited = tally{}, 0, 0
	w.since, w.roundAt, w.fresh, w.interval = now, now, now, every
	w.evidence = gather(w.look)
	w.uncounted = true
	if !w.grace.IsZero() {
		w.grace = now.Add(afterwork)
	}
	w.deadline = now.Add(every)
	if w.phase == waiting {
		w.lists = 0
		w.deadline = now.Add(w.lookEvery())
	}
}

// halted handles a process that is stopped or traced.
func (w *Watch) halted(now time.Time, v View) ([]Action, bool) {
	switch v.State {
	case 'T':
		if !w.opts.Off {
			return w.stopped(now, v), true
		}
	case 't', 'Z', 'X': // t: a debugger, which may take long; others: it has ended, which the owner is about to learn
		w.stops = 0
		w.close()
		w.afresh(now)
		return nil, true
	}
	if w.stops > 0 {
		w.stops = 0
		w.afresh(now)
	}
	return nil, false
}

// stopped continues a stopped process. While a call is waiting it is not given up, however often it stops.
func (w *Watch) stopped(now time.Time, v View) []Action {
	w.stops++
	if w.stops == 1 {
		w.close()
		w.afresh(now)
		w.stoppedAt = now
	}
	if w.stops > stopLooks && v.InFlight == 0 {
		return w.condemn(fmt.Sprintf("it is stopped (state T) and %d times SIGCONT in %s changed nothing",
			w.stops-1, round(now.Sub(w.stoppedAt))))
	}
	acts := []Action{Continue{}}
	w.deadline = now.Add(stopEvery)
	if w.stops > stopLooks {
		w.deadline = now.Add(every)
	}
	if v.InFlight > 0 {
		acts = append(acts, w.overdue(now, v)...)
	}
	return acts
}
