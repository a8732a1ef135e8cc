package supervise

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Emit emits an event for a machine's owner.
type Emit func(t event.Type, level slog.Level, message string, attrs ...slog.Attr)

// End is how the last process of a machine ended.
type End struct {
	Text       string // as a sentence without a point
	Code       int    // its exit status
	Connection bool   // it was a connection to a remote server: the server itself may be well, and nothing is started again
}

// Tell reports what follows the end of a process, in the order of WD-15: what the exit means, the wait, the restart.
// Other reports emit nothing; a planned restart beside the serving process is reported by [SpawnSpare.Tell].
func (r Report) Tell(end End, emit Emit) {
	if r.From == Failed && r.To == Starting && !r.Asked && !r.Released { // the one try of an open breaker: its pause was told of
		if !end.Connection {
			r.initiated(emit)
		}
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
		if end.Connection {
			r.lost(end, emit)
			return
		}
		emit(event.ServerCrashed, slog.LevelError, end.Text,
			slog.Int(event.KeyExitCode, end.Code), reason, slog.Bool(event.KeyRestarting, r.To != Failed))
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

// lost reports the end of a connection in one event, and a second one where the next is long in coming.
func (r Report) lost(end End, emit Emit) {
	reason, delay := slog.String(event.KeyReason, r.Reason), slog.Int64(event.KeyDelayMS, r.Delay.Milliseconds())
	next := "connecting again"
	switch {
	case r.To == Failed && r.Delay == 0:
		next = "it is not tried again by itself"
	case r.Delay > 0:
		next = "next try in " + r.Delay.Round(time.Millisecond).String()
	}
	emit(event.ConnectionLost, slog.LevelWarn, end.Text+"; "+next, reason, delay)
	if r.To == Failed {
		emit(event.BreakerOpened, slog.LevelError, "Connections keep failing; "+next, delay, reason)
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
	if s.Reload && !s.Silent {
		Report{Cause: s.Cause, Source: s.Source, Reason: s.Reason}.initiated(emit)
	}
}
