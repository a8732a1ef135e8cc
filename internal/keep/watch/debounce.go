package watch

import "time"

// debounce decides when a series of events is over. It has no clock: the times come as arguments.
type debounce struct {
	quiet time.Duration // how long nothing must happen
	limit time.Duration // longest time from the first event
	hold  time.Duration // the same while the series is held up

	active bool
	last   time.Time // of the latest event
	until  time.Time // when limit is over
	never  time.Time // when hold is over
}

// touch notes an event.
func (d *debounce) touch(now time.Time) {
	if !d.active {
		d.active, d.until, d.never = true, now.Add(d.limit), now.Add(d.hold)
	}
	d.last = now
}

// due returns when the series ends if nothing more happens; ok is false if there is none.
func (d *debounce) due() (at time.Time, ok bool) {
	at = d.last.Add(d.quiet)
	if d.until.Before(at) {
		at = d.until
	}
	return at, d.active
}

// over reports whether the series has ended, and forgets it then. While held it has not, until hold has passed; after a
// hold a quiet time begins again, because events of that time may still be coming.
func (d *debounce) over(now time.Time, held bool) bool {
	at, ok := d.due()
	if !ok || now.Before(at) {
		return false
	}
	if held && now.Before(d.never) {
		d.last, d.until = now, now.Add(d.limit)
		if d.never.Before(d.until) {
			d.until = d.never
		}
		return false
	}
	d.active = false
	return true
}

// restShare is which part of the time polling may take.
const restShare = 20

// restAfter returns how long to wait after a round of polling that took so long, so that it costs at most a twentieth.
func restAfter(interval, took time.Duration) time.Duration {
	return max(interval, (restShare-1)*took)
}
