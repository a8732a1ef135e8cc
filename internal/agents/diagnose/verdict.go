package diagnose

import "slices"

// Class is what an agent's trouble, or its health, is called.
type Class string

// The classes without trouble.
const (
	NotWatched Class = "not_watched"
	Paused     Class = "paused"
	Complete   Class = "complete" // the registry says so
	Done       Class = "done"     // it has ended, or is about to, and its work is done
	Healthy    Class = "healthy"  // it beats
	AtWork     Class = "working"  // it works, by what its files or its process show
	Idle       Class = "idle"     // it lives and has nothing to do
	Starting   Class = "starting"
	Grace      Class = "grace"       // silence is not evidence now
	Unobserved Class = "unobserved"  // it lives, and nothing else is known of it
	APIBackoff Class = "api_backoff" // its model answers with errors, and it tries again by itself
)

// The classes of trouble, by the names under which people report them.
const (
	Crashed           Class = "crashed"
	ExitedUnfinished  Class = "exited_unfinished" // exit code 0, without a mark that the work is done
	StartupBlocked    Class = "startup_blocked"
	Stopped           Class = "stopped" // by job control: SIGSTOP, Ctrl-Z
	WaitingPermission Class = "waiting_permission"
	WaitingQuestion   Class = "waiting_question"
	WaitingOther      Class = "waiting_other" // a dialog, a blocking notification, an agent that calls itself stuck
	RateLimited       Class = "rate_limited"
	APIFailed         Class = "api_failed" // its model could not be reached, or answered with errors, until its CLI gave up
	AuthExpired       Class = "auth_expired"
	CreditExhausted   Class = "credit_exhausted" // its account has nothing left to pay with
	HumanRequired     Class = "human_required"   // a failure that no restart cures
	ExecutionError    Class = "execution_error"
	ContextExhausted  Class = "context_exhausted"
	BudgetExceeded    Class = "budget_exceeded"
	ModelSilent       Class = "model_silent"
	ToolHung          Class = "tool_hung"
	TaskDead          Class = "background_task_dead" // its session waits for it, and is not told
	Loop              Class = "loop"
	NoProgress        Class = "no_progress"
	HeartbeatLost     Class = "heartbeat_lost"
	Orphaned          Class = "orphaned" // silent, and what had started it has ended
)

// The classes of evidence that cannot be judged. The stall of each is [Blind].
const (
	Unreadable    Class = "unreadable" // the entry
	Vanished      Class = "vanished"   // the entry, while it was running
	Lost          Class = "lost"       // the registry
	UnsureProcess Class = "unsure"     // whose process it is
	ManifestFault Class = "manifest"
	Contradiction Class = "contradiction"
	NoEvidence    Class = "no_evidence" // its process is not looked at, and what is shows nothing
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

// Confidence says how sure a verdict is.
type Confidence string

// The levels of PIV's classification.
const (
	High   Confidence = "high"
	Medium Confidence = "medium"
	Low    Confidence = "low"
)

// Tier is the kind of evidence that a rule rests on.
type Tier string

// The tiers, the surest first.
const (
	Hook    Tier = "H" // what the agent, its hooks or its owner say
	File    Tier = "T" // transcripts and state files of its CLI
	Process Tier = "P" // what the system says of its process
	Guess   Tier = "X" // concluded: from silence, from the form of a text
)

// Verdict is what the evidence comes to.
type Verdict struct {
	Rule       string     `json:"rule"` // such as W1; several lines of the table may share one
	Class      Class      `json:"class"`
	Stall      Stall      `json:"stall,omitempty"`
	Confidence Confidence `json:"confidence"`
	Tier       Tier       `json:"tier"`
	Since      Span       `json:"since,omitzero"` // how long it has been so, as far as the evidence tells; 0: unknown
	// Hold is how long nothing helps: until a rate limit is lifted. 0: nothing is known to pass by itself.
	Hold    Span   `json:"hold,omitzero"`
	Details string `json:"details"`         // for people
	Doubt   string `json:"doubt,omitempty"` // why the confidence is lower than this rule's usual one
}

// cured are the classes that ending the agent, and starting or resuming it, may cure. That is leave, no order: remedy, and its
// owner's policy, decide what is done.
var cured = []Class{Crashed, ExitedUnfinished, StartupBlocked, Stopped, WaitingQuestion, ContextExhausted, ModelSilent, ToolHung, TaskDead, Loop, HeartbeatLost, Orphaned}

// MayKill reports whether the verdict is a reason to end, start or resume anything: it names a trouble that this may
// cure, and it is not a low one. Nothing else ever is. Whether that reason is followed remedy decides: of an orphan, say, a
// human is told unless its owner wants more.
func (v Verdict) MayKill() bool {
	return v.Confidence != Low && slices.Contains(cured, v.Class)
}

// Well reports whether there is nothing wrong, as far as is known.
func (v Verdict) Well() bool { return v.Stall == NoStall && v.Class != APIBackoff }
