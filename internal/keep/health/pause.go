package health

import (
	"fmt"
	"time"
)

const (
	// leap is how far the two clocks may go apart between two Ticks, and how late a Tick may be, before that means a
	// suspend, a clock that was set, or that outlive did not run. A loaded machine is late by less.
	leap = 2 * time.Second
	// stopLooks is how many looks in a row find the process stopped, and tell it to go on, before it is given up.
	stopLooks = 5
	// stopEvery is the time between two of them.
	stopEvery = 2 * time.Second
)

// reading is one moment on both clocks. Linux and macOS stop the monotonic one while the machine sleeps.
type reading struct{ mono, wall time.Time }

// read splits a time: without a monotonic reading in it both clocks are the wall clock.
func read(now time.Time) reading { return reading{now, now.Round(0)} }

// interrupted says that time passed in which nobody could answer, or outlive could not hear it.
func (w *Watch) interrupted(at reading) bool {
	apart := at.wall.Sub(w.last.wall) - at.mono.Sub(w.last.mono)
	return apart.Abs() > leap || at.mono.Sub(w.deadline) > leap
}

// afresh forgets what spoke against the server and gives everything its whole time again. A probe that is on its way
// stays there: another would not be answered sooner.
func (w *Watch) afresh(now time.Time) {
	w.tally, w.rounds, w.waited = tally{}, 0, 0
	w.since, w.roundAt, w.fresh, w.interval = now, now, now, w.opts.Every
	w.evidence = gather(w.look)
	w.uncounted = true
	if !w.grace.IsZero() {
		w.grace = now.Add(w.opts.Afterwork)
	}
	w.deadline = now.Add(w.opts.Every)
	if w.phase == waiting {
		w.lists = 0
		w.deadline = now.Add(w.lookEvery())
	}
}

// halted deals with a process that is not running because somebody halted it.
func (w *Watch) halted(now time.Time, v View) ([]Action, bool) {
	switch v.State {
	case 'T':
		return w.stopped(now, v), true
	case 't', 'Z', 'X': // a debugger's, which may take all day; dead, which the owner is about to hear
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

// stopped lets a stopped process go on. While somebody waits for a call it is not given up, however often it stops.
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
		w.deadline = now.Add(w.opts.Every)
	}
	if v.InFlight > 0 {
		acts = append(acts, w.overdue(now, v)...)
	}
	return acts
}
