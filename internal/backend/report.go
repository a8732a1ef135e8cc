package backend

import (
	"fmt"
	"log/slog"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// report tells the sinks of a transition, in the order of S0 7.3: the exit, what it means, the wait, the next start.
func (b *Backend) report(r supervise.Report) {
	switch {
	case r.To == supervise.Stopping:
		b.beginRestart(r)
	case r.From == supervise.Sweeping, r.From == supervise.Starting && r.To != supervise.Serving && r.To != supervise.Sweeping:
		b.tellDecision(r)
	case r.To == supervise.Serving && r.Recovered:
		b.emit(event.BreakerClosed, slog.LevelInfo, "Server is up again")
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

// tellDecision says what follows on a process that is gone.
func (b *Backend) tellDecision(r supervise.Report) {
	reason := slog.String(event.KeyReason, r.Reason)
	delay := slog.Int64(event.KeyDelayMS, r.Delay.Milliseconds())
	switch r.Cause {
	case supervise.Clean, supervise.Shutdown:
		b.emit(event.CleanShutdown, slog.LevelInfo, "Clean shutdown requested")
		return
	case supervise.Crash, supervise.StartFail, supervise.Misconfigured:
		b.emit(event.ServerCrashed, slog.LevelError, fmt.Sprintf("Server crashed (%s)", b.describeExit()),
			slog.Int(event.KeyExitCode, b.lastOut.code), reason)
	}
	if r.To == supervise.Failed {
		text := "Server keeps failing; next try in " + r.Delay.String()
		if r.Delay == 0 {
			text = "Server keeps failing; it is not started again by itself"
		}
		b.emit(event.BreakerOpened, slog.LevelError, text, delay, reason)
		return
	}
	if r.Throttled {
		b.emit(event.RestartThrottled, slog.LevelWarn, "Restart throttle triggered (max 1/sec)", delay)
	}
	b.cause = r.Cause.String()
	b.emit(event.RestartInitiated, slog.LevelInfo, "Restart initiated: "+r.Reason,
		slog.String(event.KeyCause, b.cause), slog.String(event.KeySource, r.Source.String()), reason)
	if r.To == supervise.Backoff && !r.Throttled {
		b.emit(event.RestartDelayed, slog.LevelInfo, "Restart in "+r.Delay.String(), delay, slog.String(event.KeyCause, b.cause))
	}
}
