package monitor

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/diagnose"
	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// PIV's numbers.
const (
	defaultInterval = 15 * time.Minute
	defaultStale    = 15 * time.Minute
	defaultRestarts = 3
	// beat is how often an orchestrator writes its heartbeat (PIV-3: every 2 minutes).
	beat = 2 * time.Minute
	// staleFloor is the smallest sensible stale time: three heartbeats.
	staleFloor = 3 * beat
	// lookEvery is the time between two looks at the registry, so that a stall is found at once and not up to an
	// interval later.
	lookEvery = 5 * time.Second
	// resumeGrace is how long silence is ignored after the machine has slept, its clock was set, or the registry was
	// unreadable: every agent sends a heartbeat within it.
	resumeGrace = beat + beat/2
	// bootGrace is how long after boot the agents that ran before are left to other starters, such as a service manager.
	bootGrace = 45 * time.Second
)

// Options of a monitor. The zero value of each member works, except Home.
type Options struct {
	// Version is outlive's.
	Version string
	// Home is the directory of the registry and of everything the monitor keeps (PIV: ~/.piv).
	Home string
	// HomeFlag is what leads a command to Home, such as " --home DIR", for messages. "": commands find it by themselves.
	HomeFlag string
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
	// Environ is the environment of everything that is started, without Secrets and the variables named by the
	// registry's channels and deadman. nil: an empty one.
	Environ []string
	// Wrapper is put before the command of a declared agent, followed by the agent's name and "--", to record its output
	// and exit; --terminal precedes the name if the agent gets a terminal. nil: no wrapper.
	Wrapper []string
	// UserHome is what ~/ stands for in a registry of version 2. "": such paths are a mistake.
	UserHome string

	// Channels are always available; agents without channels of their own use all of them.
	Channels map[string]notify.Channel
	// OpenChannel opens one that a registry names. nil: those cannot be used.
	OpenChannel func(registry.Channel) (notify.Channel, error)
	// Listen makes the listeners for answers: it gets the database, the names of the channels and the receiver of
	// answers. nil: no listener.
	Listen func(db *sql.DB, channels []string, to notify.Applier) ([]Listener, error)
	// OpenGroup says that the chat has several members and no list of permitted users. Then nobody can allow, restart,
	// resume, stop or send a text from there.
	OpenGroup bool
	// Secrets are the names of variables of Environ that agents do not get.
	Secrets []string

	// Places are the directories of the CLIs' own files. A CLI without one is not inspected.
	Places agentcli.Places
	// Servers are the MCP servers that outlive keeps alive on this machine. nil: they are not looked at.
	Servers Servers
	// FleetCases is the file of what the fleet has this machine tell people of, see package fleetcases. "": it is not looked at.
	FleetCases string
	// Fleet is this machine's member of a fleet. nil: causes that machines share are not left to it.
	Fleet Fleet
	// Answer says that permission requests are answered here, so that hooks wait for it.
	Answer bool
	// Record is a file that the evidence of declared agents is appended to whenever a diagnosis changes. "": nowhere.
	Record string
	// Looked is called after each look, as the monitor's own sign of life. nil: not called.
	Looked func(error)
	// Acting is called before each act: one may take a minute, and a look with many comes round late. nil: not called.
	Acting func()

	// Out gets PIV's summary line of each cycle. nil: no output.
	Out io.Writer
	// Logger gets log messages. nil: none.
	Logger *slog.Logger

	// Set by tests. Zero: the real world.
	clock      func() Clocks
	processes  processes
	checkpoint func(step string)
	clockOnly  bool // looks only by the clock, not on events
	evidence   func(*agent) (diagnose.Evidence, finding)
}

// Fleet is what the member of a fleet does for the monitor of its machine.
type Fleet interface {
	// Share says which agents have a trouble whose cause machines may share, all of them each time, and returns the causes that the fleet
	// tells people of. An error says that none is left to it.
	Share(ctx context.Context, list []SharedTrouble) (left []string, err error)
}

// SharedTrouble is an agent's trouble whose cause agents of other machines may share.
type SharedTrouble struct {
	Cause, Agent string
	Told         bool // people were told of it here
}

// Listener receives answers of humans until ctx ends. [notify.Updates] is one.
type Listener interface {
	Run(ctx context.Context)
	// Hears reports whether answers are received now. It is called from other goroutines.
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
	if o.Acting == nil {
		o.Acting = func() {}
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

// redact removes secrets from what is stored or sent.
func (o Options) redact(s string) string { return notify.Redact(s) }

// processes is the access to processes; tests replace it.
type processes interface {
	Look(pid int) (process.Process, error)
	Stop(ctx context.Context, t process.Target) error
	Start(l process.Launch) (process.Identity, error)
	// Of declared agents only.
	All() []process.Process
	Args(pid int) []string
	Files(pid int) []string
	Variable(pid int, name string) string
	Interrupt(id process.Identity) error
}
