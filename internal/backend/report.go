package backend

import (
	"log/slog"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// report tells the sinks of a transition.
func (b *Backend) report(r supervise.Report) {
	switch r.To {
	case supervise.Stopping:
		b.beginRestart(r)
	case supervise.Serving:
		if r.Recovered {
			b.emit(event.BreakerClosed, slog.LevelInfo, "Server is up again")
		}
	default:
		b.cause = r.Cause.String()
		r.Tell(b.describeExit(), b.lastOut.code, b.emit)
		if r.To == supervise.Failed {
			b.giveUpFirst()
			b.refuseWaiting()
		}
	}
}

// beginRestart notes when a process that is to be replaced was told to go.
func (b *Backend) beginRestart(r supervise.Report) {
	if b.begun.IsZero() && r.Cause != supervise.Shutdown {
		b.begun = b.now
	}
	if r.Cause == supervise.StartFail {
		b.emit(event.StartTimeout, slog.LevelError, "Server did not start: "+r.Reason,
			slog.String(event.KeyReason, r.Reason))
	}
}
