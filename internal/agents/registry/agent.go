package registry

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

// Kind is what an agent is, and so which evidence of it can be read: an agent CLI's, or one of these.
type Kind = agentcli.Kind

// The kinds that are not CLI's. Command is anything else: only what it tells by itself, and its process, are evidence.
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

// KindNames are their names, with sep between two.
func KindNames(sep string) string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, sep)
}

// Classes are the stalls that policy and budget may be given for.
func Classes() []string {
	return []string{"crashed", "exited_unfinished", "startup_blocked", "stopped", "waiting_permission", "waiting_question", "waiting_other",
		"model_silent", "api_backoff", "api_failed", "rate_limited", "auth_expired", "credit_exhausted", "tool_hung", "background_task_dead", "loop", "no_progress", "context_exhausted",
		"execution_error", "budget_exceeded", "heartbeat_lost", "orphaned", "monitor_blind"}
}

// Rungs are the steps that a policy may list, from the gentlest to the last.
func Rungs() []string {
	return []string{"observe", "nudge", "hold", "ask_phone", "kill_tool", "interrupt", "resume", "restart", "fresh", "escalate"}
}

// Signals are the sources of evidence that can be named; an agent that names none has all of them.
func Signals() []string { return []string{"heartbeat", "process", "transcript", "hooks", "output"} }

// Agent is one declared agent, with the registry's defaults filled in. A zero duration, count or text means that nobody
// said anything: its user has a default.
type Agent struct {
	Name     string // a safe file name, see heartbeat.ValidName (version 1: whatever PIV has)
	Path     string // absolute; "~/" is filled in. May be "" for kind command
	Kind     Kind
	Match    Match
	Start    Start
	Signals  []string // of [Signals]; nil: all
	Expect   Expect
	Policy   map[string][]string // class → rungs, of [Classes] and [Rungs]
	Budget   Budget
	Escalate Escalate
	// NotifyDone says that a human is told once when it has finished, or rests.
	NotifyDone bool
	Paused     bool          // declared, but nothing is done about it
	Pos        fileerror.Pos // of the name in the file
}

// Match says which processes and sessions are the agent's.
type Match struct {
	CWD     *bool  // a process in the agent's path is its own; nil: nobody said
	Session string // "auto", or the id of one session
	PIDFile string // relative to the path, or absolute
	User    *int   // the number of the user whose processes are the agent's; nil: the monitor's own
}

// Start says how the agent is brought up and spoken to. The commands are argument lists: no shell is involved. In them
// {session}, {preamble}, {phase} and {text} are filled in when they run.
type Start struct {
	Cmd    []string          // a new run
	Resume []string          // goes on with a session
	Nudge  []string          // hands a text to a running session
	Env    map[string]string // added to the environment of all three
	// Terminal says whether Cmd and Resume get a terminal that people can join; nil: a CLI that is worked with at a terminal
	// does, anything else does not.
	Terminal *bool
}

// Expect is how long what may take. Zero: not said.
type Expect struct {
	Beat        time.Duration // between two heartbeats
	Stale       time.Duration // age at which a heartbeat means that something is wrong
	Startup     time.Duration // until there is any sign of a session
	ModelSilent time.Duration // of a call to a model without an answer
	Tool        time.Duration // of one tool, while nothing below it works
	Task        time.Duration // of a background task that is dead, until its session is told
	Attended    time.Duration // how long after a person last typed nothing is done to its process; 0: 30 min
	Waiting     time.Duration // for a human, until that is told
	Progress    time.Duration // without any change that shows
	MaxCostUSD  float64       // US dollars of a session, as far as its CLI writes them
	Done        Done
}

// Done is how a finished agent looks.
type Done struct {
	Exit     *int   // its exit status; nil: not said
	Manifest string // "complete": every phase of the manifest is
}

// Budget is how much may be tried.
type Budget struct {
	PerClass    map[string]Limit // of [Classes]
	Global      Limit            // over all agents; zero: no limit but the next two
	AtOnce      AtOnce           // how many agents start at once, over all agents
	KillGrace   time.Duration    // between asking a process to end and making it
	StableAfter time.Duration    // of health, until the ladder begins from below again
}

// AtOnce is how many agents may be starting at the same time. 0: not said.
type AtOnce struct {
	Host    int // on this machine
	Account int // of one kind, whose agents share an account
}

// Escalate is whom to tell, and when again.
type Escalate struct {
	To         []string      // names of channels
	AckTimeout time.Duration // without an acknowledgement, until Next is told
	Repeat     time.Duration // between two reminders
	Next       []string      // names of channels
	Quiet      []string      // such as "23:00-07:00 critical-only", in the registry's zone
	Max        int           // reminders; 0: not said
}

// clone is what an agent begins with: the defaults, with maps of its own. Lists are replaced as a whole, so they can be shared.
func (a Agent) clone() Agent {
	a.Policy, a.Start.Env, a.Budget.PerClass = maps.Clone(a.Policy), maps.Clone(a.Start.Env), maps.Clone(a.Budget.PerClass)
	return a
}

// Uses reports whether a source of evidence, one of [Signals], counts for this agent.
func (a Agent) Uses(signal string) bool {
	return a.Signals == nil || slices.Contains(a.Signals, signal)
}
