package watch

import (
	"time"

	"github.com/fsnotify/fsnotify"
)

// loop waits for events and times. Its actions are passed in, so that it also runs on a fake clock.
type loop struct {
	debounce debounce
	interval time.Duration         // between rounds of polling
	events   <-chan fsnotify.Event // nil: none come
	errors   <-chan error
	stop     <-chan struct{}
	do       callbacks
}

// callbacks are the loop's actions. All run on its goroutine.
type callbacks struct {
	note   func(fsnotify.Event) bool // reports whether the event can matter
	lost   func()                    // some events did not come
	poll   func() bool               // looks where no events come; reports whether something is to be compared
	polled func() bool               // reports whether there is anything to poll
	held   func(now time.Time) bool  // reports whether comparing has to wait
	settle func()                    // compares, and reports
}

// run ends when stop is closed.
func (l *loop) run() {
	quiet := time.NewTimer(time.Hour)
	defer quiet.Stop()
	var poll <-chan time.Time
	rest := l.interval
	for {
		if !l.do.polled() {
			poll = nil
		} else if poll == nil {
			poll = time.After(rest)
		}
		if at, ok := l.debounce.due(); ok {
			quiet.Reset(time.Until(at))
		} else {
			quiet.Stop()
		}
		select {
		case <-l.stop:
			return
		case e := <-l.events:
			l.touchIf(l.do.note(e))
		case <-l.errors:
			l.do.lost()
			l.touchIf(true)
		case <-poll:
			begin := time.Now()
			l.touchIf(l.do.poll())
			poll, rest = nil, max(l.interval, 19*time.Since(begin)) // polling takes at most a twentieth of the time
		case <-quiet.C:
			if now := time.Now(); l.debounce.over(now, l.do.held(now)) {
				l.do.settle()
			}
		}
	}
}

func (l *loop) touchIf(matters bool) {
	if matters {
		l.debounce.touch(time.Now())
	}
}

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
