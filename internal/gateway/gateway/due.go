package gateway

import "time"

// due is the earliest deadline of many backends. Each reports changes: asking 200 of them takes microseconds, more than
// everything else that is done for a message.
type due struct {
	at time.Time // not later than the first deadline; zero: none
}

// hear takes a backend's deadline. An outdated earlier one costs one extra tick.
func (d *due) hear(at time.Time) { d.at = earlier(d.at, at) }

// deadline is when the loop must tick.
func (r *Runner) deadline() time.Time { return earlier(r.gw.Deadline(), r.due.at) }

// earlier is the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
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
	r.due.at = time.Time{}
	for _, k := range r.kept {
		r.due.hear(k.host.Deadline())
	}
}
