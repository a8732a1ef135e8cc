package gateway

import (
	"runtime"
	"runtime/debug"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
)

// hear takes a backend's deadline. Each reports changes: asking 200 of them takes microseconds, more than everything else that is done for
// a message. An outdated earlier one costs one extra tick.
func (r *Runner) hear(at time.Time) { r.due = deadline.Earliest(r.due, at) }

// deadline is when the loop must tick.
func (r *Runner) deadline() time.Time {
	return deadline.Earliest(r.gw.Deadline(), r.due, r.quiet.at)
}

// tick handles everything that is due.
func (r *Runner) tick(now time.Time) {
	for _, k := range r.kept {
		if t := k.host.Deadline(); !t.IsZero() && !now.Before(t) {
			k.host.Backend.Tick(now)
		}
	}
	if t := r.gw.Deadline(); !t.IsZero() && !now.Before(t) {
		r.gw.Tick(now)
	}
	r.quiet.tick(now)
	r.due = time.Time{}
	for _, k := range r.kept {
		r.hear(k.host.Deadline())
	}
}

const (
	// quietFor is how long clients have said nothing when memory is given back.
	quietFor = 3 * time.Second
	// quietEvery is the least time between two times that memory is given back, because that takes a garbage collection.
	quietEvery = 10 * time.Second
)

// quiet gives memory back to the system once clients have become silent. Go's collector lets the heap double before it
// runs, and what many sessions leave at their start is as much as what they need.
type quiet struct {
	at    time.Time // when memory is given back, if nothing is said; zero: nothing was said since that was done last
	given time.Time // when memory was given back
	give  func()    // gives it back
}

// spoken notes that a client over HTTP has said something.
func (q *quiet) spoken(now time.Time) {
	if q.at = now.Add(quietFor); q.at.Before(q.given.Add(quietEvery)) {
		q.at = q.given.Add(quietEvery)
	}
}

func (q *quiet) tick(now time.Time) {
	if q.at.IsZero() || now.Before(q.at) {
		return
	}
	q.at, q.given = time.Time{}, now
	q.give()
}

// giveMemoryBack returns at once; it takes milliseconds.
func giveMemoryBack() {
	go func() {
		runtime.GC() // each collection halves a stack of which a quarter is used
		debug.FreeOSMemory()
	}()
}
