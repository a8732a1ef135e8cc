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

	watch *health.Watch // from when it serves
	deaf  bool          // it answers everything but ping

	flow interface{ endOverdue(until time.Time) }
	life interface{ step(ev supervise.Event) }
}

// Vitals is what the system tells about a running process and everything it started. What is not known is zero.
type Vitals struct {
	RSS     int64         // resident memory in bytes
	CPU     time.Duration // user and system time since its start
	State   byte          // of the leader, in the letters of proc(5): R S D T t Z
	Known   bool          // the system told
	HeardAt time.Time     // the last byte on its stderr
	Held    bool          // its stdout is not being read, because the client does not take it
	Trouble string        // of a server elsewhere: why the last request failed on its way, in words; "": it did not
	Login   string        // of a server elsewhere: somebody is to log in there just now, and how; "": nobody is
}

// healthDeadline is when the serving process is to be looked at.
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

// watchHealth begins to watch a process that serves from now on.
func (w *healthWatch) watchHealth(p *process) {
	opts := w.opts.Health
	opts.NoPing = opts.NoPing || w.deaf || p.era == mcp.Modern
	w.watch = health.New(opts, w.now)
	p.heard = w.now
}

// healthTick takes a look at the serving process, if it is time.
func (w *healthWatch) healthTick() {
	at := w.healthDeadline()
	if at.IsZero() || w.now.Before(at) {
		return
	}
	w.healthDo(w.watch.Tick(w.now, w.view()))
	if w.watch != nil {
		w.deaf = w.watch.NoPing()
	}
}

// view is the serving process as its health is judged by.
func (w *healthWatch) view() health.View {
	p := w.process
	v := p.server.Vitals()
	unread, _ := p.server.Unread()
	view := health.View{
		Look:  health.Look{CPU: v.CPU, Known: v.Known && !w.opts.Elsewhere, State: v.State, Unread: unread},
		Heard: p.heard, Held: v.Held,
	}
	if v.HeardAt.After(view.Heard) {
		view.Heard = v.HeardAt
	}
	for c := range w.calls.all {
		if c.state != sent || c.gen != p.gen || c.method == mcp.Listen {
			continue
		}
		view.InFlight++
		if view.Oldest.IsZero() || c.touched.Before(view.Oldest) {
			view.Oldest = c.touched
		}
	}
	return view
}

func (w *healthWatch) healthDo(actions []health.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case health.Send:
			w.sendProbe(a.Probe)
		case health.Continue:
			w.process.server.Continue()
		case health.Overdue:
			w.flow.endOverdue(a.Until)
		case health.Suspect:
			w.emit(event.ServerSuspect, slog.LevelWarn, "Server may hang: "+a.Reason, slog.String(event.KeyReason, a.Reason))
		case health.Cleared:
			w.emit(event.ServerCleared, slog.LevelInfo, "Server works after all")
		case health.Condemn:
			w.condemn(supervise.Unhealthy, a.Reason)
		}
	}
}

// sendProbe asks the serving process something harmless.
func (w *healthWatch) sendProbe(probe health.Probe) {
	watch := w.watch
	w.questions.ask(w.process, func(id []byte) []byte {
		switch {
		case probe == health.Ping:
			return jsonrpc.AppendRequest(nil, id, mcp.Ping.String(), nil)
		case w.session.Era == mcp.Modern:
			return mcp.DiscoverLine(id, w.privateMeta())
		}
		return mcp.ListLine(id, mcp.Tools, nil, nil)
	}, func([]byte) {
		if w.watch == watch {
			w.healthDo(watch.ProbeAnswered(w.now, probe))
		}
	})
}

// condemn ends the serving process: it no longer works, or takes too much.
func (w *healthWatch) condemn(cause supervise.Cause, reason string) {
	w.emit(event.ServerUnhealthy, slog.LevelError, "Server is ended: "+reason,
		slog.String(event.KeyReason, reason), slog.String(event.KeyCause, cause.String()))
	w.life.step(supervise.Condemned{Gen: w.process.gen, Cause: cause, Reason: reason})
}
