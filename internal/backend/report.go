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
		switch r.To {
		case supervise.Failed:
			b.giveUpFirst()
			b.refuseWaiting()
		case supervise.Backoff:
			b.refuseLate()
		}
	}
}

// decided tells what follows on a process that is gone; of any other transition there is nothing to tell.
func (b *Backend) decided(r supervise.Report) {
	if r.Cause != supervise.NoCause { // a start has none of its own
		b.cause = r.Cause.String()
	}
	code := b.lastOut.code
	if b.lastOut.shell != 0 {
		code = b.lastOut.shell
	}
	r.Tell(b.describeEnd(), code, b.emit)
}

// describeEnd says what has happened to the last process, as a sentence.
func (b *Backend) describeEnd() string {
	if b.lastOut.kind == connectionEnded {
		return "Server cannot be used: " + b.lastOut.why
	}
	return "Server crashed (" + b.describeExit() + ")"
}

// beginRestart notes when a process that is to be replaced was told to go.
func (b *Backend) beginRestart(r supervise.Report) {
	if b.begun.IsZero() && r.Cause != supervise.Shutdown && r.Cause != supervise.Idle {
		b.begun = b.now
	}
	if r.Cause == supervise.StartFail {
		what := "Server did not start: "
		if b.opts.Remote {
			what = "Server did not take the handshake: "
		}
		b.emit(event.StartTimeout, slog.LevelError, what+r.Reason,
			slog.String(event.KeyReason, r.Reason))
	}
}
