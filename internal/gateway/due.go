package gateway

import "time"

// askAllEvery is how often all backends are asked when they want to be called. A backend's wish changes only when something
// reaches it; those the runner sees that happen to are asked at once. What a process says that goes no further, such as the
// answer to a question of the backend's own, it does not see: then a wish is heard so much later at most.
const askAllEvery = 20 * time.Millisecond

// due knows when the first of many backends wants to be called. To ask 200 of them takes 13 µs, which is more than all
// else that is done for a message: that must not be at each turn of the loop.
type due struct {
	at      time.Time // not later than the first wish that is known; zero: there is none
	asked   time.Time // when all were asked last
	touched []*kept   // who may want something else since
}

// touch notes that a backend may want to be called at another time.
func (d *due) touch(k *kept) {
	if !k.touched {
		k.touched = true
		d.touched = append(d.touched, k)
	}
}

// hear takes one backend's wish. An earlier one that does not hold any more costs one look at all, no more.
func (d *due) hear(k *kept) {
	if !k.opened {
		return
	}
	if t := k.host.Backend.Deadline(); !t.IsZero() && (d.at.IsZero() || t.Before(d.at)) {
		d.at = t
	}
}

// deadline is when the loop is to tick.
func (r *Runner) deadline() time.Time {
	d, now := &r.due, r.loop.Now()
	all := now.Sub(d.asked) >= askAllEvery
	if all {
		d.at, d.asked = time.Time{}, now
		for _, k := range r.kept {
			d.hear(k)
		}
	}
	for _, k := range d.touched {
		k.touched = false
		if !all {
			d.hear(k)
		}
	}
	clear(d.touched)
	d.touched = d.touched[:0]
	at := earlier(r.gw.Deadline(), d.at)
	if !all { // the loop has turned since: something may have reached a backend unseen
		at = earlier(at, d.asked.Add(askAllEvery))
	}
	return at
}

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
		if !k.opened {
			continue
		}
		if t := k.host.Backend.Deadline(); !t.IsZero() && !now.Before(t) {
			k.host.Backend.Tick(now)
		}
	}
	if t := r.gw.Deadline(); !t.IsZero() && !now.Before(t) {
		r.gw.Tick(now)
	}
	r.due.asked = time.Time{}
}
