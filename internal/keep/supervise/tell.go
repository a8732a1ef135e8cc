package supervise

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Emit emits an event for a machine's owner.
type Emit func(t event.Type, level slog.Level, message string, attrs ...slog.Attr)

// Tell reports what follows the end of a process, in the order of WD-15: what the exit means, the wait, the restart.
// exit is the last process's end as a sentence, code its exit status. Other reports emit nothing; a planned restart
// beside the serving process is reported by [SpawnSpare.Tell].
func (r Report) Tell(exit string, code int, emit Emit) {
	if r.From == Failed && r.To == Starting && !r.Asked && !r.Released { // the one try of an open breaker: its pause was told of
		r.initiated(emit)
		return
	}
	decided := r.From == Sweeping || r.From == Starting && (r.To == Backoff || r.To == Failed || r.To == Starting)
	if !decided && !r.Asked && !r.AtOnce && !r.Released {
		return
	}
	reason := slog.String(event.KeyReason, r.Reason)
	delay := slog.Int64(event.KeyDelayMS, r.Delay.Milliseconds())
	switch r.Cause {
	case Clean, Shutdown:
		emit(event.CleanShutdown, slog.LevelInfo, "Clean shutdown requested")
		return
	case Idle:
		emit(event.ServerSlept, slog.LevelInfo, "Server is asleep: "+r.Reason, reason)
		return
	case Crash, StartFail, Misconfigured, Unhealthy, Memory:
		emit(event.ServerCrashed, slog.LevelError, exit,
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
		Throttled{r.Delay}.Tell(emit) // and the restart, once that has passed
		return
	}
	r.initiated(emit)
	if r.To == Backoff && r.Delay > 0 {
		emit(event.RestartDelayed, slog.LevelInfo, "Restart in "+r.Delay.Round(time.Millisecond).String(), delay,
			slog.String(event.KeyCause, r.Cause.String()))
	}
}

func (r Report) initiated(emit Emit) {
	emit(event.RestartInitiated, slog.LevelInfo, "Restart initiated: "+r.Reason, slog.String(event.KeyCause, r.Cause.String()),
		slog.String(event.KeySource, r.Source.String()), slog.String(event.KeyReason, r.Reason))
}

// Tell reports that a requested restart waits.
func (t Throttled) Tell(emit Emit) {
	emit(event.RestartThrottled, slog.LevelWarn, "Restart throttle triggered (max 1/sec)", slog.Int64(event.KeyDelayMS, t.Delay.Milliseconds()))
}

// Tell reports once that a planned restart beside the serving process has begun.
func (s SpawnSpare) Tell(emit Emit) {
	if !s.Reload || s.Silent {
		return
	}
	emit(event.RestartInitiated, slog.LevelInfo, "Restart initiated: "+s.Reason, slog.String(event.KeyCause, s.Cause.String()),
		slog.String(event.KeySource, s.Source.String()), slog.String(event.KeyReason, s.Reason))
}
