package health

import "time"

const (
	// effortOver is how long the use of processor time is measured at least: a tick of the usual clock is 10 ms.
	effortOver = 15 * time.Second
	// effortLeast is the part of a core beyond the use at rest by which a call shows that it is worked on. Timers and the collection of
	// garbage need less.
	effortLeast = 0.05
)

// effort compares the processor time that is used while calls are in flight with that used at rest.
type effort struct {
	from   time.Time // since when is measured
	cpu    time.Duration
	known  bool
	rest   float64   // cores in use without a call, when that was measured last
	worked time.Time // the end of the last measurement that showed work
}

// begin begins to measure anew.
func (e *effort) begin(now time.Time, l Look) { e.from, e.cpu, e.known = now, l.CPU, l.Known }

// see takes a look. calling and resting say what has been the case since the last one, calls or none; neither: both, or something else.
func (e *effort) see(now time.Time, l Look, calling, resting bool) {
	span, used := now.Sub(e.from), l.CPU-e.cpu
	usable := e.known && l.Known && used >= 0 // the sum decreases when a descendant's share is lost with it
	if usable && calling != resting && span < effortOver {
		return
	}
	cores := used.Seconds() / span.Seconds()
	switch {
	case !usable:
	case calling && cores >= e.rest+effortLeast:
		e.worked = now
	case resting:
		e.rest = cores
	}
	e.begin(now, l)
}

// Worked is when the process last showed, by its use of processor time, that it works on a call. Zero: it has not.
func (w *Watch) Worked() time.Time { return w.effort.worked }
