package monitor

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// PIV's numbers.
const (
	defaultInterval = 15 * time.Minute
	defaultStale    = 15 * time.Minute
	defaultRestarts = 3
	// beat is how often an orchestrator writes its heartbeat (PIV-3: every 2 minutes).
	beat = 2 * time.Minute
	// staleFloor is the least stale time that makes sense: three beats.
	staleFloor = 3 * beat
	// lookEvery is how often the registry is looked at between two cycles: a stall is found when it is one, not up to
	// an interval later.
	lookEvery = 5 * time.Second
	// resumeGrace is how long nobody is called silent after the machine has slept or its clock was set, or the registry
	// was out of order: every agent beats once within it.
	resumeGrace = beat + beat/2
	// bootGrace is how long after the machine was started the agents that ran before are left to whoever starts them then,
	// such as a service manager.
	bootGrace = 45 * time.Second
)

// Options of a monitor. The zero value of each member works, except Home.
type Options struct {
	// Home is the directory of the registry and of everything the monitor keeps (PIV: ~/.piv).
	Home string
	// Registry is its path. "": registry.yaml in Home (PIV_REGISTRY_PATH).
	Registry string
	// Log is the improvement log's path. "": improvement-log.md in Home (PIV_IMPROVEMENT_LOG_PATH).
	Log string
	// PIDFile is its path. "": supervisor.pid in Home (PIV_SUPERVISOR_PID_PATH).
	PIDFile string

	// Interval is the time between two cycles. 0: 15 minutes (PIV_MONITOR_INTERVAL_MS).
	Interval time.Duration
	// Stale is the age at which a heartbeat is stale; less than three beats, 6 minutes, counts as 6 minutes. 0: 15
	// minutes (PIV_HEARTBEAT_STALE_MS).
	Stale time.Duration
	// Restarts is the occurrence of one stall in one phase at which a human is asked instead. 0: 3
	// (PIV_MAX_RESTART_ATTEMPTS).
	Restarts int

	// Command restarts an orchestrator of a PIV registry, in its project's directory. nil: PIV-9's, npx tsx
	// .claude/orchestrator/src/index.ts.
	Command []string
	// Environ is what everything that is started gets, but for Secrets and the variables that the registry's channels and
	// its deadman name. nil: nothing at all.
	Environ []string
	// Wrapper is put before the command of a declared agent, with the agent's name and "--" behind it, so that its output
	// and its end are seen; --terminal stands before the name where the agent gets a terminal. nil: nothing is.
	Wrapper []string
	// UserHome is what ~/ stands for in a registry of version 2. "": such paths are a mistake.
	UserHome string

	// Channels tell a human, whatever the registry says; all of them of whatever has no channels of its own.
	Channels map[string]notify.Channel
	// OpenChannel opens one that a registry names. nil: those cannot be used.
	OpenChannel func(address string) (notify.Channel, error)
	// Listen makes whoever hears answers from channels: it gets the database, the names of the channels and whom the
	// answers are for. nil: nobody listens.
	Listen func(db *sql.DB, channels []string, to notify.Applier) ([]Listener, error)
	// OpenGroup says that the chat has several members and no list of those who may decide. Then nobody can allow, restart,
	// resume, stop or say anything to an agent from there.
	OpenGroup bool
	// Secrets are the names of variables of Environ that no agent gets.
	Secrets []string

	// Places are where agents' CLIs keep their files. A CLI without one is not looked at.
	Places agentcli.Places
	// Herdr is the program of that name, whose panes agents run in. "": it is not asked for them.
	Herdr string
	// Answer says that requests for a permission are answered here: hooks wait for it then.
	Answer bool
	// Record is a file that the evidence of declared agents is appended to whenever a verdict changes. "": nowhere.
	Record string
	// Looked is called after each look, whatever it found: the sign that this monitor itself works. nil: nobody.
	Looked func(error)

	// Out gets PIV's summary line of each cycle. nil: nobody.
	Out io.Writer
	// Logger tells what happens. nil: nobody.
	Logger *slog.Logger

	// What the tests put in place of the world. Zero: the world.
	clock      func() Moment
	processes  processes
	checkpoint func(step string)
	deaf       bool // no event asks for a look, only the clock
	evidence   func(*agent) (diagnose.Evidence, finding)
}

// Listener hears what humans answer, until ctx ends. [notify.Updates] is one.
type Listener interface {
	Run(ctx context.Context)
	// Hears reports whether answers are heard right now. It is called by another goroutine than Run.
	Hears() bool
}

// defaultCommand is that of PIV-9.
var defaultCommand = []string{"npx", "tsx", ".claude/orchestrator/src/index.ts"}

func (o Options) withDefaults() Options {
	orPath := func(p *string, name string) {
		if *p == "" {
			*p = filepath.Join(o.Home, name)
		}
	}
	orPath(&o.Registry, "registry.yaml")
	orPath(&o.Log, "improvement-log.md")
	orPath(&o.PIDFile, "supervisor.pid")
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Stale <= 0 {
		o.Stale = defaultStale
	}
	o.Stale = max(o.Stale, staleFloor)
	if o.Restarts <= 0 {
		o.Restarts = defaultRestarts
	}
	if len(o.Command) == 0 {
		o.Command = defaultCommand
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.clock == nil {
		o.clock = now
	}
	if o.processes == nil {
		o.processes = process.System{}
	}
	if o.checkpoint == nil {
		o.checkpoint = func(string) {}
	}
	return o
}

// pace is the least time between two acts on one project of a PIV registry.
func (o Options) pace() time.Duration { return min(o.Interval, time.Minute) }

// tiers are the channels for whoever has none of its own.
func (o Options) tiers() [][]string {
	if len(o.Channels) == 0 {
		return nil
	}
	return [][]string{slices.Sorted(maps.Keys(o.Channels))}
}

// redact takes secrets out of what may be kept and sent.
func (o Options) redact(s string) string { return notify.Redact(s) }
