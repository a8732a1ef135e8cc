package backend

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/health"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// Vitals is what the system tells about a running process and everything it started. What is not known is zero.
type Vitals struct {
	RSS     int64         // resident memory in bytes
	CPU     time.Duration // user and system time since its start
	State   byte          // of the leader, in the letters of proc(5): R S D T t Z
	Known   bool          // the system told
	HeardAt time.Time     // the last byte on its stderr
	Held    bool          // its stdout is not being read, because the client does not take it
	Trouble string        // of a server elsewhere: why the last request failed on its way, in words; "": it did not
}

// healthDeadline is when the serving process is to be looked at.
func (b *Backend) healthDeadline() time.Time {
	if p := b.process; b.health == nil || !p.up || !p.answered || p.draining {
		return time.Time{}
	}
	return b.health.Deadline()
}

// watchHealth begins to watch a process that serves from now on.
func (b *Backend) watchHealth(p *process) {
	opts := b.opts.Health
	opts.NoPing = opts.NoPing || b.deaf || p.era == mcp.Modern
	b.health = health.New(opts, b.now)
	p.heard = b.now
}

// healthTick takes a look at the serving process, if it is time.
func (b *Backend) healthTick() {
	at := b.healthDeadline()
	if at.IsZero() || b.now.Before(at) {
		return
	}
	b.healthDo(b.health.Tick(b.now, b.view()))
	if b.health != nil {
		b.deaf = b.health.NoPing()
	}
}

// view is the serving process as its health is judged by.
func (b *Backend) view() health.View {
	p := b.process
	v := p.server.Vitals()
	unread, _ := p.server.Unread()
	view := health.View{
		Look:  health.Look{CPU: v.CPU, Known: v.Known && !b.opts.Elsewhere, State: v.State, Unread: unread},
		Heard: p.heard, Held: v.Held,
	}
	if v.HeardAt.After(view.Heard) {
		view.Heard = v.HeardAt
	}
	for c := range b.calls.all {
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

func (b *Backend) healthDo(actions []health.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case health.Send:
			b.sendProbe(a.Probe)
		case health.Continue:
			b.process.server.Continue()
		case health.Overdue:
			b.endOverdue(a.Until)
		case health.Suspect:
			b.emit(event.ServerSuspect, slog.LevelWarn, "Server may hang: "+a.Reason, slog.String(event.KeyReason, a.Reason))
		case health.Cleared:
			b.emit(event.ServerCleared, slog.LevelInfo, "Server works after all")
		case health.Condemn:
			b.condemn(supervise.Unhealthy, a.Reason)
		}
	}
}

// sendProbe asks the serving process something harmless.
func (b *Backend) sendProbe(probe health.Probe) {
	watch := b.health
	b.ask(b.process, func(id []byte) []byte {
		switch {
		case probe == health.Ping:
			return jsonrpc.AppendRequest(nil, id, mcp.Ping.String(), nil)
		case b.session.Era == mcp.Modern:
			return mcp.DiscoverLine(id, b.privateMeta())
		}
		return mcp.ListLine(id, mcp.Tools, nil, nil)
	}, func([]byte) {
		if b.health == watch {
			b.healthDo(watch.ProbeAnswered(b.now, probe))
		}
	})
}

// endOverdue answers the calls that have taken too long. The server is told that nobody waits for them any more.
func (b *Backend) endOverdue(until time.Time) {
	for c := range b.calls.all {
		if c.state != sent || c.gen != b.process.gen || c.method == mcp.Listen || c.touched.After(until) {
			continue
		}
		b.process.send(mcp.CancelledLine(c.onWire(), "time limit"))
		b.timeOut(c)
	}
}

// timeOut answers one call that has taken too long.
func (b *Backend) timeOut(c *call) {
	limit := b.opts.Health.CallTimeout
	b.emit(event.CallTimedOut, slog.LevelWarn, fmt.Sprintf("Call of %s took more than %s without progress", c.what(), limit),
		slog.String(event.KeyMethod, c.methodName()), slog.String(event.KeyRequestID, string(c.id.raw)))
	b.answerUnknown(c, reasonTimeout, fmt.Sprintf("%s gave no answer and no sign of progress within %s (--call-timeout) and was "+
		"cancelled. It may or may not have taken effect. Check the state before calling it again.", c.what(), limit))
}

// condemn ends the serving process: it no longer works, or takes too much.
func (b *Backend) condemn(cause supervise.Cause, reason string) {
	b.emit(event.ServerUnhealthy, slog.LevelError, "Server is ended: "+reason,
		slog.String(event.KeyReason, reason), slog.String(event.KeyCause, cause.String()))
	b.step(supervise.Condemned{Gen: b.process.gen, Cause: cause, Reason: reason})
}
