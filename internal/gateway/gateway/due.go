package gateway

import "time"

// due knows when the first of many backends wants to be called. Each tells when that changes: to ask 200 of them takes
// microseconds, which is more than all else that is done for a message.
type due struct {
	at time.Time // not later than the first wish; zero: there is none
}

// hear takes one backend's wish. An earlier one that does not hold any more costs one look at all, no more.
func (d *due) hear(at time.Time) { d.at = earlier(d.at, at) }

// deadline is when the loop is to tick.
func (r *Runner) deadline() time.Time { return earlier(r.gw.Deadline(), r.due.at) }

// earlier is the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// tick lets everything happen whose time has come.
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
