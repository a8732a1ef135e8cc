package supervise

import (
	"fmt"
	"log/slog"

	"github.com/outlive-mcp/outlive/internal/event"
)

// Emit is how a machine's owner tells its sinks of something.
type Emit func(t event.Type, level slog.Level, message string, attrs ...slog.Attr)

// Tell says what follows on a process that is gone, in the order of S0 7.3: what the exit means, the wait, the restart.
// exit is the last process's end in words, code its exit status. A report of anything else says nothing.
func (r Report) Tell(exit string, code int, emit Emit) {
	decided := r.From == Sweeping || r.From == Starting && (r.To == Backoff || r.To == Failed || r.To == Starting)
	if !decided && !r.Asked {
		return
	}
	reason := slog.String(event.KeyReason, r.Reason)
	delay := slog.Int64(event.KeyDelayMS, r.Delay.Milliseconds())
	switch r.Cause {
	case Clean, Shutdown:
		emit(event.CleanShutdown, slog.LevelInfo, "Clean shutdown requested")
		return
	case Crash, StartFail, Misconfigured:
		emit(event.ServerCrashed, slog.LevelError, fmt.Sprintf("Server crashed (%s)", exit),
			slog.Int(event.KeyExitCode, code), reason, slog.Bool(event.KeyRestarting, r.To != Failed))
	}
	if r.To == Failed {
		text := "Server keeps failing; next try in " + r.Delay.String()
		if r.Delay == 0 {
			text = "Server keeps failing; it is not started again by itself"
		}
		emit(event.BreakerOpened, slog.LevelError, text, delay, reason)
		return
	}
	if r.Throttled {
		emit(event.RestartThrottled, slog.LevelWarn, "Restart throttle triggered (max 1/sec)", delay)
	}
	cause := slog.String(event.KeyCause, r.Cause.String())
	emit(event.RestartInitiated, slog.LevelInfo, "Restart initiated: "+r.Reason, cause,
		slog.String(event.KeySource, r.Source.String()), reason)
	if r.To == Backoff && !r.Throttled {
		emit(event.RestartDelayed, slog.LevelInfo, "Restart in "+r.Delay.String(), delay, cause)
	}
}
