package health

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
)

// phase is the state of a Watch between two Ticks.
type phase uint8

const (
	resting phase = iota // no probe is open; a look when the interval has passed
	waiting              // for the answer to a probe
	over                 // condemned, or disabled without a limit of calls
)

// Watch watches one serving process. Use [New].
type Watch struct {
	opts     Options
	phase    phase
	deadline time.Time
	last     reading // the last Tick
	look     Look    // at that Tick

	noPing    bool          // probes are sent by Lists only
	proven    bool          // it has answered a probe
	interval  time.Duration // between looks while all is well
	signed    time.Time     // when it began, or last answered a probe
	heard     time.Time     // Heard of the last View
	pinged    time.Time     // when the last round began
	suspected bool

	uncounted bool      // the time until the next Tick is not waiting: a call is in flight, or after an interruption
	called    time.Time // when the last known call was sent
	exceeded  bool      // a call was ended by CallTimeout, without a sign since
	grace     time.Time // until when it may work on a cancelled call; zero: there is none
	fresh     time.Time // the time of calls is counted from here at the earliest
	stops     int       // looks in a row that found it stopped
	stoppedAt time.Time

	// A series is consecutive rounds of probes without any sign of life in between.
	open     bool
	since    time.Time     // when its first probe was sent
	rounds   int           // number of failed ones
	roundAt  time.Time     // when the round began
	waited   time.Duration // in this round, with outlive running and no call in flight
	ping     bool          // a Ping of this series is unanswered
	lists    time.Duration // value of waited when this round's Lists was sent; 0: not sent
	evidence evidence
	tally    tally

	effort effort
}

// New begins to watch a process that serves from now on.
func New(opts Options, now time.Time) *Watch {
	w := &Watch{opts: opts, noPing: opts.NoPing, interval: every, signed: now, last: read(now)}
	w.deadline = now.Add(every)
	switch {
	case !opts.Off:
	case opts.CallTimeout == 0:
		w.phase = over
	default:
		w.deadline = now // a call that it has already may be due soon
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

// NoPing reports that this server answers other requests, but not ping: worth remembering for [Options.NoPing].
func (w *Watch) NoPing() bool { return w.noPing }

// Suspected reports whether the process may hang: from a [Suspect] until a [Cleared].
func (w *Watch) Suspected() bool { return w.suspected }

// Called records that a request was sent to the server, so that a call is watched although the last Deadline was far
// away. It costs two comparisons.
func (w *Watch) Called(now time.Time) {
	w.uncounted, w.called = true, now
	due := now.Add(every)
	if w.opts.CallTimeout > 0 {
		due = now.Add(min(every, w.opts.CallTimeout))
	}
	w.deadline = deadline.Earliest(w.deadline, due)
}

// ProbeAnswered records any answer, also an error, to a probe however old. The owner may also report an answer to the
// same request of a client.
func (w *Watch) ProbeAnswered(now time.Time, p Probe) []Action {
	if w.phase == over {
		return nil
	}
	w.proven = true
	switch {
	case p == Ping:
		w.noPing = w.opts.NoPing // the answer was only late
	case w.ping && w.lists > 0:
		w.noPing = true
	}
	next := doubled(w.interval)
	acts := w.alive()
	w.signed, w.interval = now, next
	if !w.uncounted { // otherwise the deadline is also for a call
		w.deadline = now.Add(next)
	}
	return acts
}

// Tick evaluates a View and returns what has to be done. It may also be called before its Deadline, for example when
// a call has ended. If it is called much later than that, outlive did not run.
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
		w.effort.begin(now, v.Look)
		w.afresh(now)
		return acts
	}
	w.effort.see(now, v.Look, v.InFlight > 0, v.InFlight == 0 && !w.uncounted && w.grace.IsZero())
	if todo, yes := w.halted(now, v); yes {
		return append(acts, todo...)
	}
	if w.open {
		w.evidence.see(v.Look)
	}
	if v.InFlight > 0 {
		w.uncounted = true
		w.called = later(w.called, v.Oldest)
		w.interval = every
		w.deadline = now.Add(every)
		return append(acts, w.overdue(now, v)...)
	}
	if w.open && !w.uncounted {
		w.evidence.use(before, v.Look, span)
		w.waited += span
	}
	w.uncounted = false
	if w.opts.Off {
		w.deadline = now.Add(slowest)
		return acts
	}
	if w.phase == waiting {
		return append(acts, w.wait(now, v)...)
	}
	return append(acts, w.rest(now, v)...)
}

// hear ends every suspicion if the server has sent something.
func (w *Watch) hear(v View) []Action {
	if v.Heard.After(w.called) {
		w.grace, w.exceeded = time.Time{}, false
	}
	// The answer to a probe counts as a sign of life, too, but not as activity.
	if v.Heard.After(w.heard) && v.Heard.After(w.signed.Add(time.Second)) {
		w.interval = every
	}
	w.heard = v.Heard
	if w.open && !v.Heard.Before(w.since) {
		return w.alive()
	}
	return nil
}

// overdue ends the calls whose time is over.
func (w *Watch) overdue(now time.Time, v View) []Action {
	if w.opts.CallTimeout == 0 {
		return nil
	}
	due := later(v.Oldest, w.fresh).Add(w.opts.CallTimeout)
	if due.After(now) {
		w.deadline = deadline.Earliest(w.deadline, due)
		return nil
	}
	w.exceeded = true
	w.deadline = deadline.Earliest(w.deadline, now.Add(w.lookEvery()))
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
	w.interval = every
}

func (w *Watch) condemn(reason string) []Action {
	w.phase = over
	return []Action{Condemn{Reason: reason}}
}

// reason says what the signs against the server are.
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

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
