package heartbeat

import (
	"sync"
	"time"
)

// Runs knows which agent's run is under way: it pairs starts and ends as healthchecks does. It may be used by several
// goroutines, and calls nobody. After a restart of the monitor it is filled by showing it the observations kept.
type Runs struct {
	mu      sync.Mutex
	started map[string]startedRun
}

type startedRun struct {
	at  time.Time
	run string
}

// Apply takes note of an observation and gives it back, with Took where it ends a run whose start is known. A failure ends
// the run whatever its id; a success only when it has the start's id or none.
func (r *Runs) Apply(o Observation) Observation {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Kind == Started {
		if r.started == nil {
			r.started = map[string]startedRun{}
		}
		r.started[o.Agent] = startedRun{o.Wall, o.Run}
		return o
	}
	start, running := r.started[o.Agent]
	if !running || o.Kind != Success && o.Kind != Failure {
		return o
	}
	switch {
	case start.run == o.Run:
		o.Took = max(o.Wall.Sub(start.at), 0)
		delete(r.started, o.Agent)
	case o.Kind == Failure, o.Run == "":
		delete(r.started, o.Agent)
	}
	return o
}

// Since says when the run began that an agent is in: healthchecks' state "started".
func (r *Runs) Since(agent string) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	start, running := r.started[agent]
	return start.at, running
}
