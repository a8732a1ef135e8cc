package host

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/line/backend"
)

// starting is a process that is being started in the background. To start one takes milliseconds, which the client of the
// process that serves meanwhile is not to wait for. What it is given before it exists is kept in its server's inlet; that it is
// to end stands in its server.
type starting struct {
	outcome chan outcome  // gets one
	joined  chan struct{} // closed when that is known to the loop: its end may be told
}

// outcome is how a start went.
type outcome struct {
	process *child.Process
	err     error
}

// startBeside starts a process in the background.
func (h *Host) startBeside(s *server, spec child.Spec) {
	u := &starting{outcome: make(chan outcome, 1), joined: make(chan struct{})}
	s.starting = u
	go func() {
		process, err := child.Start(spec, func(st child.Status) {
			<-u.joined
			h.gone(s, st)
		})
		u.outcome <- outcome{process, err}
		h.loop.Post(func() { h.finishStart(s) })
	}()
}

// finishStart completes a background start: the process gets what was sent to it meanwhile.
// Of one that is born already it does nothing.
func (h *Host) finishStart(s *server) {
	u := s.starting
	if u == nil {
		return
	}
	got := <-u.outcome
	s.starting = nil
	now := time.Now()
	if got.err != nil {
		h.unstarted(s)
		h.Backend.ServerExited(now, s.gen, backend.Exit{Code: -1, Unstarted: got.err})
		h.Backend.ServerClosed(now, s.gen)
		return
	}
	s.process = got.process
	h.join(s)
	close(u.joined)
	if s.ending {
		s.Kill() // it has begun nothing
	}
	h.Backend.ServerSpawned(now, s.gen, s.process.PID())
}
