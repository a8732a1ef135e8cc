package agentrun

import (
	"time"
)

// How often a report is written at most.
const (
	writeEvery = time.Second
	// urgentEvery is for urgent changes. A title can change a thousand times a second.
	urgentEvery = 100 * time.Millisecond
)

// recorder writes the report when it has changed.
type recorder struct {
	seen  *seen
	write func(Report) error
	quit  chan struct{}
	done  chan error
}

// record writes the report now and on later changes.
func record(s *seen, write func(Report) error) *recorder {
	r := &recorder{seen: s, write: write, quit: make(chan struct{}), done: make(chan error, 1)}
	go r.run()
	return r
}

func (r *recorder) close() error {
	close(r.quit)
	return <-r.done
}

func (r *recorder) run() {
	for {
		r.seen.pressing() // it is told with this one
		last := time.Now()
		failed := r.write(r.seen.snapshot()) != nil // the agent continues
		if !r.pause(last, failed) {
			r.done <- r.write(r.seen.snapshot())
			return
		}
	}
}

// pause returns when the next report is due; false: the last one is. again requests one in any case: the one before failed.
func (r *recorder) pause(last time.Time, again bool) bool {
	timer := time.NewTimer(writeEvery)
	defer timer.Stop()
	if !again {
		timer.Stop()
	}
	urgent := false
	for {
		select {
		case <-r.quit:
			return false
		case <-timer.C:
			return true
		case <-r.seen.changed:
			urgent = r.seen.pressing() || urgent
			timer.Reset(due(last, time.Now(), urgent))
		}
	}
}

// due is how long to wait until the next report after the one of last.
func due(last, now time.Time, urgent bool) time.Duration {
	every := writeEvery
	if urgent {
		every = urgentEvery
	}
	return min(max(every-now.Sub(last), 0), every)
}
