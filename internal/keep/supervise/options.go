package supervise

import (
	"cmp"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/keep/restart"
)

// AnswerGrace is how long a process whose client has left may take to answer what it was asked, and to come up for it; behind a
// gateway, too.
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

	// InstallGrace is the least time between Terminate and Kill of a process that has not come up, unless outlive itself was
	// told to end (default 0). A command that installs its server first needs it, to undo an installation.
	InstallGrace time.Duration
}

const (
	// restartGrace is the time between Terminate and Kill at a planned restart.
	restartGrace = 2 * time.Second
	// replaceGrace is that time when the process is to be replaced at once.
	replaceGrace = 300 * time.Millisecond
	// inputGrace is the time between the last answer of a process whose client has left and Terminate.
	inputGrace = 1500 * time.Millisecond
	// eofGrace is the time between Terminate and Kill after that.
	eofGrace = 500 * time.Millisecond
	// signalGrace is the time between Terminate and Kill when outlive itself was told to end.
	signalGrace = 600 * time.Millisecond
)

func (o Options) withDefaults() Options {
	o.StartTimeout = cmp.Or(o.StartTimeout, 30*time.Second)
	o.RetireFor = cmp.Or(o.RetireFor, 10*time.Minute)
	o.DrainFor = cmp.Or(o.DrainFor, time.Second)
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
