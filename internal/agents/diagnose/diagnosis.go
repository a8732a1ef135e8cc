package diagnose

import "slices"

// Class names an agent's state: its trouble, or its health.
type Class string

// The classes without trouble.
const (
	NotWatched Class = "not_watched"
	Paused     Class = "paused"
	Complete   Class = "complete" // the registry says so
	Done       Class = "done"     // it has ended, or is about to, and its work is done
	Healthy    Class = "healthy"  // it beats
	AtWork     Class = "working"  // it works, according to its files or its process
	Idle       Class = "idle"     // it lives and has nothing to do
	Starting   Class = "starting"
	Grace      Class = "grace"       // silence is not evidence now
	Unobserved Class = "unobserved"  // it lives; nothing else is known
	APIBackoff Class = "api_backoff" // its model answers with errors, and it retries by itself
)

// The classes of trouble, by the names under which they are reported.
const (
	Crashed           Class = "crashed"
	ExitedUnfinished  Class = "exited_unfinished" // exit code 0, without a mark that the work is done
	StartupBlocked    Class = "startup_blocked"
	Stopped           Class = "stopped" // by job control: SIGSTOP, Ctrl-Z
	WaitingPermission Class = "waiting_permission"
	WaitingQuestion   Class = "waiting_question"
	WaitingOther      Class = "waiting_other"  // a dialog, a blocking notification, or an agent that reports itself stuck
	WaitingServer     Class = "waiting_server" // of MCP, which only a person can mend
	RateLimited       Class = "rate_limited"
	APIFailed         Class = "api_failed" // its CLI gave up, because the model was unreachable or answered with errors
	AuthExpired       Class = "auth_expired"
	CreditExhausted   Class = "credit_exhausted" // its account has no credit
	HumanRequired     Class = "human_required"   // a failure that a restart does not fix
	ExecutionError    Class = "execution_error"
	ContextExhausted  Class = "context_exhausted"
	BudgetExceeded    Class = "budget_exceeded"
	ModelSilent       Class = "model_silent"
	ToolHung          Class = "tool_hung"
	ServerHung        Class = "server_hung"          // of MCP, that outlive keeps alive: it does not work on the agent's call
	TaskDead          Class = "background_task_dead" // its session waits for the task, and is not told of its end
	Loop              Class = "loop"
	NoProgress        Class = "no_progress"
	HeartbeatLost     Class = "heartbeat_lost"
	Orphaned          Class = "orphaned" // silent, and the process that started it has ended
)

// The classes of evidence that cannot be judged. The stall of each is [Blind].
const (
	Unreadable    Class = "unreadable" // the entry
	Vanished      Class = "vanished"   // the entry, while it was running
	Lost          Class = "lost"       // the registry
	UnsureProcess Class = "unsure"     // whose process it is
	ManifestFault Class = "manifest"
	Contradiction Class = "contradiction"
	NoEvidence    Class = "no_evidence" // nothing shows whether it works
)

// Stall is PIV's coarse type of a stall (PIV-4). "" is none.
type Stall string

// The stalls of PIV-4, and one more: the evidence cannot be read.
const (
	NoStall Stall = ""
	Crash   Stall = "orchestrator_crashed"
	Waiting Stall = "agent_waiting_for_input"
	Errored Stall = "execution_error"
	Hung    Stall = "session_hung"
	Blind   Stall = "monitor_blind"
)

// Confidence says how sure a diagnosis is.
type Confidence string

// The levels of PIV's classification.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Tier is the kind of evidence that a rule is based on.
type Tier string

// The tiers, the most reliable first.
const (
	Hook    Tier = "H" // reports of the agent, its hooks or its owner
	File    Tier = "T" // transcripts and state files of its CLI, and what outlive says of its MCP servers
	Process Tier = "P" // what the system reports about its process
	Guess   Tier = "X" // inferred from silence or from the form of a text
)

// Diagnosis is the result of judging the evidence.
type Diagnosis struct {
	Rule       string     `json:"rule"` // such as W1; several rules of the table may share one
	Class      Class      `json:"class"`
	Stall      Stall      `json:"stall,omitempty"`
	Confidence Confidence `json:"confidence"`
	Tier       Tier       `json:"tier"`
	Since      Span       `json:"since,omitzero"` // for how long, according to the evidence; 0: unknown
	// Hold is the time during which no action helps: until a rate limit ends. Negative: the limit should have ended so
	// long ago. 0: unknown.
	Hold    Span   `json:"hold,omitzero"`
	Details string `json:"details"`         // for people
	Doubt   string `json:"doubt,omitempty"` // why the confidence is lower than usual for this rule
}

// cured are the classes for which ending the agent, and starting or resuming it, may help. It is a permission only:
// the recovery, by its owner's policy, decides what is done.
var cured = []Class{Crashed, ExitedUnfinished, StartupBlocked, Stopped, WaitingQuestion, ContextExhausted, ModelSilent, ToolHung, ServerHung, TaskDead, Loop, HeartbeatLost, Orphaned}

// MayKill reports whether the diagnosis is a reason to end, start or resume anything: its class is one that this may
// fix, and its confidence is not low. There is no other reason. The recovery decides whether to act: for an orphan,
// for example, it only notifies a human unless the owner's policy allows more.
func (v Diagnosis) MayKill() bool {
	return v.Confidence != Low && slices.Contains(cured, v.Class)
}

// Well reports whether nothing is wrong, as far as is known.
func (v Diagnosis) Well() bool { return v.Stall == NoStall && v.Class != APIBackoff }
