package agentrun

import "time"

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

// run writes the report now, and whenever a change of it is due.
func (r *recorder) run() {
	due := time.NewTimer(0)
	defer due.Stop()
	var last time.Time // when the last one was written
	urgent := false
	for {
		select {
		case <-r.quit:
			r.done <- r.write(r.seen.snapshot())
			return
		case <-r.seen.changed:
			every := writeEvery
			if urgent = r.seen.pressing() || urgent; urgent {
				every = urgentEvery
			}
			due.Reset(time.Until(last.Add(every)))
		case <-due.C:
			r.seen.pressing() // it is told with this one
			urgent, last = false, time.Now()
			if r.write(r.seen.snapshot()) != nil { // the agent continues
				due.Reset(writeEvery)
			}
		}
	}
}
