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
		b.decided(r)
		if r.Recovered {
			b.emit(event.BreakerClosed, slog.LevelInfo, "Server is up again")
		}
	default:
		b.decided(r)
		if r.To == supervise.Failed {
			b.giveUpFirst()
			b.refuseWaiting()
		}
	}
}

// decided tells what follows on a process that is gone; of any other transition there is nothing to tell.
func (b *Backend) decided(r supervise.Report) {
	if r.From != supervise.Serving || r.To != supervise.Serving {
		b.cause = r.Cause.String()
	}
	r.Tell(b.describeExit(), b.lastOut.code, b.emit)
}

// beginRestart notes when a process that is to be replaced was told to go.
func (b *Backend) beginRestart(r supervise.Report) {
	if b.begun.IsZero() && r.Cause != supervise.Shutdown && r.Cause != supervise.Idle {
		b.begun = b.now
	}
	if r.Cause == supervise.StartFail {
		b.emit(event.StartTimeout, slog.LevelError, "Server did not start: "+r.Reason,
			slog.String(event.KeyReason, r.Reason))
	}
}
