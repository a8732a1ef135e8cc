package health

import (
	"fmt"
	"time"
)

// phase is where a Watch is between two Ticks.
type phase uint8

const (
	resting phase = iota // nothing is asked; a look when the interval has passed
	waiting              // for an answer to a probe
	over                 // condemned, or off
)

// Watch watches one process that serves. Use [New].
type Watch struct {
	opts     Options
	phase    phase
	deadline time.Time
	last     reading // the last Tick
	look     Look    // at that Tick

	noPing    bool          // asked by Lists only
	proven    bool          // it has answered a probe
	interval  time.Duration // between looks while all is well
	signed    time.Time     // it began, or answered a probe
	heard     time.Time     // of the last View
	pinged    time.Time     // the last probe that began a round
	suspected bool

	uncounted bool      // what passes until the next Tick is no waiting: a call is in flight, or there was an interruption
	called    time.Time // the last call that is known of was sent
	exceeded  bool      // a call was ended by CallTimeout, and nothing heard since
	grace     time.Time // until when it may work on what its client gave up; zero: nothing of that
	fresh     time.Time // no call's time counts from before
	stops     int       // looks in a row that found it stopped
	stoppedAt time.Time

	// A series is rounds of probes without any sign of life between them.
	open     bool
	since    time.Time     // its first probe
	rounds   int           // failed
	roundAt  time.Time     // the round's beginning
	waited   time.Duration // in this round, with outlive running and no call in flight
	ping     bool          // a Ping of this series has no answer
	lists    time.Duration // waited when this round's Lists was sent; 0: not sent
	evidence evidence
	tally    tally
}

// New begins to watch a process that serves from now on.
func New(opts Options, now time.Time) *Watch {
	opts = opts.orDefault()
	w := &Watch{opts: opts, noPing: opts.NoPing, interval: opts.Every, signed: now, last: read(now)}
	w.deadline = now.Add(opts.Every)
	if opts.Off {
		w.phase = over
	}
	return w
}

// Deadline is when the next Tick is due. Zero: never.
func (w *Watch) Deadline() time.Time {
	if w.phase == over {
		return time.Time{}
	}
	return w.deadline
}

// NoPing says that this server answers other questions, but no ping: worth remembering for [Options.NoPing].
func (w *Watch) NoPing() bool { return w.noPing }

// Called takes note that a request was sent to the server, so that a call is watched although the last Deadline was far
// away. It costs two comparisons.
func (w *Watch) Called(now time.Time) {
	w.uncounted, w.called = true, now
	due := now.Add(w.opts.Every)
	if w.opts.CallTimeout > 0 {
		due = now.Add(min(w.opts.Every, w.opts.CallTimeout))
	}
	w.deadline = earlier(w.deadline, due)
}

// ProbeAnswered takes note of any answer, an error too, to a probe however old; the owner may also tell of an answer to
// the same question that somebody else asked.
func (w *Watch) ProbeAnswered(now time.Time, p Probe) []Action {
	if w.phase == over {
		return nil
	}
	w.proven = true
	switch {
	case p == Ping:
		w.noPing = w.opts.NoPing // an answer that only came late
	case w.ping && w.lists > 0:
		w.noPing = true
	}
	next := w.opts.doubled(w.interval)
	acts := w.alive()
	w.signed, w.interval = now, next
	if !w.uncounted { // else the deadline is for a call, too
		w.deadline = now.Add(next)
	}
	return acts
}

// Tick takes a look and says what is to be done. It may also come before its Deadline, such as when a call has ended.
// One that comes much later than that means that outlive did not run.
func (w *Watch) Tick(now time.Time, v View) []Action { return w.tick(read(now), v) }

func (w *Watch) tick(at reading, v View) []Action {
	if w.phase == over {
		return nil
	}
	now := at.mono
	before, span, broken := w.look, now.Sub(w.last.mono), w.interrupted(at)
	w.last, w.look = at, v.Look
	acts := w.hear(v)
	if broken || v.Held {
		w.afresh(now)
		return acts
	}
	if todo, yes := w.halted(now, v); yes {
		return append(acts, todo...)
	}
	if w.open {
		w.evidence.see(v.Look)
	}
	if v.InFlight > 0 {
		w.uncounted = true
		w.called = later(w.called, v.Oldest)
		w.interval = w.opts.Every
		w.deadline = now.Add(w.opts.Every)
		return append(acts, w.overdue(now, v)...)
	}
	if w.open && !w.uncounted {
		w.evidence.use(before, v.Look, span)
		w.waited += span
	}
	w.uncounted = false
	if w.phase == waiting {
		return append(acts, w.wait(now, v)...)
	}
	return append(acts, w.rest(now, v)...)
}

// hear ends every suspicion if something came from the server.
func (w *Watch) hear(v View) []Action {
	if v.Heard.After(w.called) {
		w.grace, w.exceeded = time.Time{}, false
	}
	// The answer to a probe is heard, too, but is no activity.
	if v.Heard.After(w.heard) && v.Heard.After(w.signed.Add(time.Second)) {
		w.interval = w.opts.Every
	}
	w.heard = v.Heard
	if w.open && !v.Heard.Before(w.since) {
		return w.alive()
	}
	return nil
}

// overdue ends the calls that have had their time.
func (w *Watch) overdue(now time.Time, v View) []Action {
	if w.opts.CallTimeout == 0 {
		return nil
	}
	due := later(v.Oldest, w.fresh).Add(w.opts.CallTimeout)
	if due.After(now) {
		w.deadline = earlier(w.deadline, due)
		return nil
	}
	w.exceeded = true
	w.deadline = earlier(w.deadline, now.Add(w.lookEvery()))
	return []Action{Overdue{Until: now.Add(-w.opts.CallTimeout)}}
}

// alive ends a series, and the suspicion with it.
func (w *Watch) alive() []Action {
	w.close()
	if !w.suspected {
		return nil
	}
	w.suspected = false
	return []Action{Cleared{}}
}

func (w *Watch) close() {
	w.phase, w.open, w.ping = resting, false, false
	w.rounds, w.waited, w.lists, w.tally = 0, 0, 0, tally{}
	w.interval = w.opts.Every
}

func (w *Watch) condemn(reason string) []Action {
	w.phase = over
	return []Action{Condemn{Reason: reason}}
}

// reason says what speaks against the server.
func (w *Watch) reason(now time.Time, v View) string {
	silence := "it has never said anything"
	if !v.Heard.IsZero() {
		silence = fmt.Sprintf("no message for %s", round(now.Sub(v.Heard)))
	}
	rounds := "a round of probes"
	if w.rounds > 1 {
		rounds = fmt.Sprintf("%d rounds of probes", w.rounds)
	}
	return fmt.Sprintf("no answer to %s in %s, %s, %s", rounds, round(now.Sub(w.since)), silence, &w.evidence)
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
