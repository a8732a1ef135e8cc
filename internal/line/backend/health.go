package backend

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/health"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// healthWatch watches whether the serving process still works.
type healthWatch struct {
	*core

	watch  *health.Watch // from when it serves
	noPing bool          // it answers everything but ping
	pinged *process      // has a ping that it has not answered; nil: none
}

// Vitals is what the system tells about a running process and everything it started. What is not known is zero.
type Vitals struct {
	RSS     int64         // resident memory in bytes
	CPU     time.Duration // user and system time since its start
	State   byte          // of the leader, in the letters of proc(5): R S D T t Z
	Known   bool          // the system told
	HeardAt time.Time     // the last byte on its stderr
	Held    bool          // its stdout is not read, because the client does not read
	Trouble string        // of a remote server: why the last request failed in transit; "": it did not
	Login   string        // of a remote server: how the user can log in, while the server waits for that; "": it does not
}

// healthDeadline is when the serving process must be checked.
func (w *healthWatch) healthDeadline() time.Time {
	if p := w.process; w.watch == nil || p.phase != active {
		return time.Time{}
	}
	return w.watch.Deadline()
}

// called notes that the serving process was given a request.
func (w *healthWatch) called() {
	if w.watch != nil {
		w.watch.Called(w.now)
	}
}

// watchHealth begins to watch a process that has begun to serve.
func (w *healthWatch) watchHealth(p *process) {
	opts := w.opts.Health
	opts.NoPing = opts.NoPing || w.noPing || p.era == mcp.Modern
	w.watch = health.New(opts, w.now)
	p.heard = w.now
}

// watchCalls begins to watch the calls of p, which takes no new ones: their limit holds until it ends.
func (w *healthWatch) watchCalls(p *process) {
	opts := w.opts.Health
	opts.Off = true
	p.overtime = health.New(opts, w.now)
}

// healthTick checks the serving process, and the calls of those that take no new ones, if they are due.
func (w *healthWatch) healthTick() {
	for p := range w.all {
		if at := p.overtimeDeadline(); !at.IsZero() && !w.now.Before(at) {
			w.healthDo(p, p.overtime.Tick(w.now, w.view(p)))
		}
	}
	at := w.healthDeadline()
	if at.IsZero() || w.now.Before(at) {
		return
	}
	w.healthDo(w.process, w.watch.Tick(w.now, w.view(w.process)))
	if w.watch != nil {
		w.noPing = w.watch.NoPing()
	}
}

// view is the input for judging p's health.
func (w *healthWatch) view(p *process) health.View {
	v := p.server.Vitals()
	unread, _ := p.server.Unread()
	view := health.View{
		Look:  health.Look{CPU: v.CPU, Known: v.Known && !w.opts.Elsewhere, State: v.State, Unread: unread},
		Heard: p.heard, Held: v.Held,
	}
	if v.HeardAt.After(view.Heard) {
		view.Heard = v.HeardAt
	}
	for c := range w.calls.at(p.gen) {
		if c.method == mcp.Listen {
			continue
		}
		view.InFlight++
		if view.Oldest.IsZero() || c.touched.Before(view.Oldest) {
			view.Oldest = c.touched
		}
	}
	return view
}

func (w *healthWatch) healthDo(p *process, actions []health.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case health.Send:
			watch := w.watch
			w.ask(w.process, a.Probe, func() {
				if w.watch == watch {
					w.healthDo(w.process, watch.ProbeAnswered(w.now, a.Probe))
				}
			})
		case health.Continue:
			w.process.server.Continue()
		case health.Overdue:
			w.flow.endOverdue(p, a.Until)
		case health.Suspect:
			w.emit(event.ServerSuspect, slog.LevelWarn, "Server may hang: "+a.Reason, slog.String(event.KeyReason, a.Reason))
		case health.Cleared:
			w.emit(event.ServerCleared, slog.LevelInfo, "Server works after all")
		case health.Condemn:
			w.replaceUnhealthy(supervise.Unhealthy, a.Reason)
		}
	}
}

// ask sends a process a harmless request.
func (w *healthWatch) ask(p *process, probe health.Probe, answered func()) {
	w.questions.ask(p, func(id []byte) []byte {
		switch {
		case probe == health.Ping:
			return jsonrpc.AppendRequest(nil, id, mcp.Ping.String(), nil)
		case w.session.Era == mcp.Modern:
			return mcp.DiscoverLine(id, w.privateMeta())
		}
		return mcp.ListLine(id, mcp.Tools, nil, nil)
	}, func([]byte) {
		if probe == health.Ping {
			w.pinged = nil
		}
		answered()
	})
	if probe == health.Ping {
		w.pinged = p
	}
}

// crashed notes that p has ended by itself. A server that does so at a ping does not know that method, and is not asked by it again.
func (w *healthWatch) crashed(p *process) { w.noPing = w.noPing || w.pinged == p }

// probeLiveness asks p, which works on a call, for a sign of life: first by a ping, and by a list if it is silent on that. More is
// not asked before it has answered.
func (w *healthWatch) probeLiveness(p *process) {
	if w.opts.Health.Off || p.livenessProbes > int(health.Lists) {
		return
	}
	probe := health.Probe(p.livenessProbes)
	if w.noPing || p.era == mcp.Modern {
		probe = health.Lists
	}
	p.livenessProbes++
	w.ask(p, probe, func() { p.livenessProbes = 0 })
}

// worked is when p has last shown by its processor time that it works on a call. Only the serving process is looked at.
func (w *healthWatch) worked(p *process) time.Time {
	if w.watch == nil || p != w.process || w.opts.Health.Off {
		return time.Time{}
	}
	return w.watch.Worked()
}

// replaceUnhealthy ends the serving process: it does not work any more, or uses too much.
func (w *healthWatch) replaceUnhealthy(cause supervise.Cause, reason string) {
	w.emit(event.ServerUnhealthy, slog.LevelError, "Server is ended: "+reason,
		slog.String(event.KeyReason, reason), slog.String(event.KeyCause, cause.String()))
	w.life.step(supervise.MarkUnhealthy{Gen: w.process.gen, Cause: cause, Reason: reason})
}
