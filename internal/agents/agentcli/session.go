package agentcli

import "time"

// Session is one session of an agent CLI, as its own files show it at one look.
type Session struct {
	Kind    Kind
	ID      string
	Dir     string // its working directory
	File    string // its transcript, or the database it is in; "": none is there yet
	Version string // of the CLI; "": unknown

	// PID is the process that runs it, and Start the time of its start in the system's own units, as in the file or as
	// handed in. 0: the files do not say. A session's file outlives a killed process: PID and Start must both be those
	// of a living one.
	PID   int
	Start uint64
	// Namespace says whose process numbers PID is one of, where the CLI writes it (Claude Code: system, machine and PID
	// namespace). A session in a container with the same home directory has another one than we.
	Namespace string

	Status     Status
	WaitingFor Wait
	StatusAt   time.Time // when it got this status; zero: unknown
	Turn       Turn

	// Subagent says that another session of the same process has started this one.
	Subagent bool
	// SubagentAt is when one of its subagents last wrote to its own transcript. It is only looked up while a tool is
	// open that runs them.
	SubagentAt time.Time
}

// Status is what a session is doing.
type Status string

// The statuses.
const (
	Unknown  Status = ""
	Idle     Status = "idle"     // at its prompt
	Busy     Status = "busy"     // in a turn, also while it hangs
	Waiting  Status = "waiting"  // for a human
	Retrying Status = "retrying" // its model answers with errors, and it tries again
)

// Wait is what a waiting session waits for.
type Wait string

// The waits. "" is none, or nothing that is known.
const (
	ForPermission Wait = "permission"
	ForQuestion   Wait = "question"
	ForDialog     Wait = "dialog" // trust, login, a limit, a new model, an MCP server
)

// Open is what a transcript waits for.
type Open string

// What can be open.
const (
	Nothing  Open = ""
	Model    Open = "model"
	Tool     Open = "tool"
	Question Open = "question" // a tool that asks the human
	Plan     Open = "plan"     // a plan that the human has to accept
	// Permission is a call that asks for more rights and has no output. Codex writes nothing when the human has agreed:
	// a call that has been allowed and runs for long looks the same.
	Permission Open = "permission"
)

// Turn is what a transcript says of the turn that runs, or of the last one.
type Turn struct {
	// Sequence grows with every record that means something, so that only a greater one is new evidence. It is the
	// length of what has been read (bytes) or, in a database, the time of the last change (Unix milliseconds).
	Sequence int64
	LastAt   time.Time // of that record, by the agent's clock

	Open   Open
	OpenAt time.Time // since when. For the model: since nothing has come back from it, however often it was asked again
	Tool   string    // the name of the open call
	// ToolInput is what matters of its arguments: the command, the question, the path. Shortened, with secrets that are
	// in it.
	ToolInput string

	Ended       bool // the turn is over, and nothing has begun since
	EndedAsking bool // and its last text ends with a question
	Interrupted bool // and a human has ended it
	LastText    string

	// TypedAt is when a turn was last begun, ended or answered by the source of the agent's prompts: a person, in a session
	// at a terminal. Zero: not seen.
	TypedAt time.Time

	Error   Failure // the model's last word, or a part of the turn's end; of kind "" once something came after it
	Repeats Repeats

	Tokens  int64   // used so far
	CostUSD float64 // as far as the CLI writes it; 0: unknown
	Turns   int
	// Partial says that reading has begun in the middle: Tokens and Turns only count from there.
	Partial bool

	// ProgressAt is when a file was last edited, something was committed, a call came to what it did not come to before in the
	// turn, or one of a minute or more came to a good end; not before a person last typed. Zero: not seen.
	ProgressAt time.Time

	// Tasks go on in the background, as far as the session was told, since its user's last prompt. Only Claude Code shows them.
	Tasks []Task
}

// FailureKind is the kind of an error.
type FailureKind string

// The kinds.
const (
	NoFailure       FailureKind = ""
	APIFailure      FailureKind = "api"        // overloaded, 5xx, network
	RateLimited     FailureKind = "rate_limit" // 429, usage limit
	CreditEmpty     FailureKind = "credit"     // the account has nothing left to pay with
	AuthFailure     FailureKind = "auth"       // 401, 403, login expired
	ContextFull     FailureKind = "context"    // the conversation is too long for the model
	ExecutionFailed FailureKind = "execution"  // anything else that ended the turn
)

// Failure is an error that a session shows.
type Failure struct {
	Kind   FailureKind
	Status int    // of HTTP; 0: unknown
	Text   string // shortened
	At     time.Time

	Attempt int       // the retry that is next or under way; 0: there is none
	Max     int       // retries that there are; 0: unknown
	RetryAt time.Time // when it is tried again; zero: unknown
	Until   time.Time // when a limit is lifted; zero: unknown
	Final   bool      // it ended the turn
}

// Repeats counts what was done again and again, with nothing else between.
type Repeats struct {
	SameCall    int // the same tool, arguments and result
	SameError   int // the same error
	Alternating int // A, B, A, B: pairs
}

// Process is a living process, as its owner knows it.
type Process struct {
	Kind  Kind
	PID   int
	Start uint64    // the time of its start in the system's own units
	Began time.Time // the same by the clock; zero: unknown
	Dir   string    // its working directory; "": unknown
}
