package registry

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// Kind is the type of an agent, which decides what evidence of it can be read: an agent CLI, or one of these.
type Kind = agentcli.Kind

// The kinds that are not CLIs. Command is any other program: its only evidence is its own reports and its process.
const (
	ACP     Kind = "acp"
	PIV     Kind = "piv"
	Command Kind = "command"
)

// Kinds are all kinds, in the order that documentation shows them in.
func Kinds() []Kind {
	var kinds []Kind
	for _, c := range agentcli.CLIs() {
		kinds = append(kinds, c.Kind)
	}
	return append(kinds, ACP, PIV, Command)
}

// KindNames returns the names of all kinds, separated by sep.
func KindNames(sep string) string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, sep)
}

// Classes are the stalls that policy and budget can be set for.
func Classes() []string {
	return []string{"crashed", "exited_unfinished", "startup_blocked", "stopped", "waiting_permission", "waiting_question", "waiting_other",
		"model_silent", "api_backoff", "api_failed", "rate_limited", "auth_expired", "credit_exhausted", "tool_hung", "server_hung", "background_task_dead", "loop", "no_progress", "context_exhausted",
		"execution_error", "budget_exceeded", "heartbeat_lost", "orphaned"}
}

// Signals are the names of sources of evidence. An agent that lists none uses all of them.
func Signals() []string { return []string{"heartbeat", "process", "transcript", "hooks", "output"} }

// Agent is one declared agent, with the registry's defaults filled in. A zero duration, count or text was not given:
// the code that uses it has a default.
type Agent struct {
	Name     string // a safe file name, see heartbeat.ValidName (version 1: PIV's name, unchecked)
	Path     string // absolute, with "~/" replaced. May be "" for kind command
	Kind     Kind
	Match    Match
	Start    Start
	Signals  []string // of [Signals]; nil: all
	Expect   Expect
	Policy   map[string]recovery.Ladder // by class, of [Classes]; an empty one was none, or could not be climbed
	Budget   Budget
	Escalate Escalate
	// NotifyDone says that a human is notified once when it has finished, or rests.
	NotifyDone bool
	Paused     bool          // declared, but nothing is done about it
	Pos        fileerror.Pos // position of its name in the file
}

// Match says which processes and sessions are the agent's.
type Match struct {
	CWD     *bool  // processes in the agent's path are its own; nil: not given
	Session string // "auto", or the id of one session
	PIDFile string // relative to the path, or absolute
	User    *int   // uid of the user whose processes are the agent's; nil: the monitor's own
}

// Start says how the agent is started, and how texts are passed to it. The commands are argument lists: no shell is
// involved. {session}, {preamble}, {phase} and {text} in them are replaced when they run.
type Start struct {
	Cmd    []string          // starts a new run
	Resume []string          // continues a session
	Nudge  []string          // passes a text to a running session
	Env    map[string]string // added to the environment of all three
	// Terminal says whether Cmd and Resume get a terminal that people can join. nil: yes for a CLI that is used at a
	// terminal, no for anything else.
	Terminal *bool
}

// Expect are the agent's time limits. Zero: not given.
type Expect struct {
	Beat        time.Duration // between two heartbeats
	Stale       time.Duration // age at which a heartbeat is stale
	Startup     time.Duration // until the first sign of a session
	ModelSilent time.Duration // of a model call without an answer
	Tool        time.Duration // of one tool, while no process below it works
	Task        time.Duration // of waiting for a background task that is dead
	Attended    time.Duration // no action is taken on a process for this long after a person last typed there; 0: 30 min
	Waiting     time.Duration // waiting for a human, until that is reported
	Progress    time.Duration // without visible change
	MaxCostUSD  float64       // US dollars of a session, if its CLI records them
	Done        Done
}

// Done says how a finished agent is recognised.
type Done struct {
	Exit     *int   // its exit status, or [NeverDone]; nil: not given
	Manifest string // "complete": every phase of the manifest is complete
}

// NeverDone is an exit status that no program has: the agent is not meant to end.
const NeverDone = -1

// Budget limits what may be tried.
type Budget struct {
	PerClass    map[string]recovery.Budget // of [Classes]
	Global      recovery.Budget            // over all agents; zero: only the next two limits
	AtOnce      AtOnce                     // how many agents may be starting at once, over all agents
	KillGrace   time.Duration              // between asking a process to end and killing it
	StableAfter time.Duration              // of health, after which the ladder begins at its first rung again
}

// AtOnce is how many agents may be starting at the same time. 0: not given.
type AtOnce struct {
	Host    int // on this machine
	Account int // of one kind, whose agents share an account
}

// Escalate says whom to notify, and when to repeat it.
type Escalate struct {
	To         []string      // names of channels
	AckTimeout time.Duration // time without an acknowledgement until Next is notified
	Repeat     time.Duration // between two reminders
	Next       []string      // names of channels
	Quiet      []string      // such as "23:00-07:00 critical-only", in the registry's zone
	Max        int           // maximum number of reminders; 0: not given
}

// clone returns a copy with its own maps, for an agent that starts from the defaults. Lists are shared, because they
// are only replaced as a whole.
func (a Agent) clone() Agent {
	a.Policy, a.Start.Env, a.Budget.PerClass = maps.Clone(a.Policy), maps.Clone(a.Start.Env), maps.Clone(a.Budget.PerClass)
	return a
}

// Uses reports whether the agent uses a source of evidence, one of [Signals].
func (a Agent) Uses(signal string) bool {
	return a.Signals == nil || slices.Contains(a.Signals, signal)
}
