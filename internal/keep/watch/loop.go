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
	failed func(error) bool          // the same for an error of the source of events
	poll   func() bool               // looks where no events come; reports whether something is to be compared
	polled func() bool               // reports whether there is anything to poll
	held   func(now time.Time) bool  // reports whether comparing has to wait
	settle func()                    // compares, and reports
	spare  func() bool               // work for idle times, a little of it; reports whether there is more
}

// run ends when stop is closed.
func (l *loop) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	nextPoll := time.Now().Add(l.interval)
	more := true
	idle := make(chan struct{})
	close(idle)
	for {
		wake, wanted := l.debounce.due()
		if l.do.polled() && (!wanted || nextPoll.Before(wake)) {
			wake, wanted = nextPoll, true
		}
		if wanted {
			timer.Reset(time.Until(wake))
		} else {
			timer.Stop()
		}
		var spare <-chan struct{}
		if more && !l.debounce.active {
			spare = idle
		}
		select {
		case <-l.stop:
			return
		case e := <-l.events:
			l.touchIf(l.do.note(e))
		case err := <-l.errors:
			l.touchIf(l.do.failed(err))
		case <-timer.C:
		case <-spare:
			more = l.do.spare()
		}
		now := time.Now()
		if l.do.polled() && !now.Before(nextPoll) {
			l.touchIf(l.do.poll())
			end := time.Now()
			nextPoll = end.Add(restAfter(l.interval, end.Sub(now)))
		}
		if at, ok := l.debounce.due(); ok && !now.Before(at) && l.debounce.over(now, l.do.held(now)) {
			l.do.settle()
			more = true
		}
	}
}

func (l *loop) touchIf(matters bool) {
	if matters {
		l.debounce.touch(time.Now())
	}
}
