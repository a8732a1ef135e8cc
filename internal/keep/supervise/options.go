package supervise

import (
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/restart"
)

// AnswerGrace is how long a client that has closed its end gets answers, behind a gateway, too.
const AnswerGrace = 10 * time.Second

// Options are the settings of a machine. The zero value of each field is its default.
type Options struct {
	Backoff backoff.Policy    // default backoff.Transparent
	Exits   restart.ExitRules // default: 0 is clean, 42 a restart, all else a crash

	// StartTimeout is how long a process may take to come up, from its Handshake (default 30 s); a spare from its
	// SpawnSpare.
	StartTimeout time.Duration

	// Standby is how many initialised spares are kept for the case that the serving process dies (default 0).
	Standby int
	// RetireFor is how long an old process may take to finish its requests after a new one has taken over (default 10
	// min).
	RetireFor time.Duration

	// DrainFor is how long requests in flight may go on before a planned restart (default 1 s).
	DrainFor time.Duration
	// RestartGrace is the time between Terminate and Kill at a planned restart (default 2 s).
	RestartGrace time.Duration
	// ReplaceGrace is that time when the process is to be replaced at once (default 300 ms).
	ReplaceGrace time.Duration

	// InstallGrace is the least time between Terminate and Kill of a process that has not come up, unless outlive itself was
	// told to end (default 0). A command that installs its server first needs it, to undo an installation.
	InstallGrace time.Duration

	// AnswerGrace is how long a process whose client has left may take to answer what it was asked, and to come up for it
	// (default [AnswerGrace]).
	AnswerGrace time.Duration
	// InputGrace is the time between its last answer and Terminate after that (default 1.5 s).
	InputGrace time.Duration
	// EOFGrace is the time between Terminate and Kill after that (default 0.5 s).
	EOFGrace time.Duration
	// SignalGrace is the time between Terminate and Kill when outlive itself was told to end (default 0.6 s).
	SignalGrace time.Duration
}

func (o Options) withDefaults() Options {
	for _, d := range []struct {
		at  *time.Duration
		def time.Duration
	}{
		{&o.StartTimeout, 30 * time.Second}, {&o.RetireFor, 10 * time.Minute}, {&o.DrainFor, time.Second},
		{&o.RestartGrace, 2 * time.Second}, {&o.ReplaceGrace, 300 * time.Millisecond},
		{&o.AnswerGrace, AnswerGrace}, {&o.InputGrace, 1500 * time.Millisecond},
		{&o.EOFGrace, 500 * time.Millisecond}, {&o.SignalGrace, 600 * time.Millisecond},
	} {
		if *d.at == 0 {
			*d.at = d.def
		}
	}
	return o
}

// graceOf is the time between Terminate and Kill of a process that has come up or not, where grace is meant for one that has.
func (o Options) graceOf(grace time.Duration, up bool) time.Duration {
	if up {
		return grace
	}
	return max(grace, o.InstallGrace)
}

// timeout is the reason for a process that did not come up in time.
func (o Options) timeout() string {
	return "no answer to the handshake within " + o.StartTimeout.String()
}
