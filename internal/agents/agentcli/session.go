package agentcli

import "time"

// Session is the state of one session of an agent CLI at one look, according to the CLI's own files.
type Session struct {
	Kind Kind
	ID   string
	Dir  string // its working directory
	File string // its transcript, or the database with it; "": there is none yet

	// PID is the process that runs it, and Start that process's start time in the system's own units, from the file
	// or from the query. 0: the files do not say. A session's file remains when its process is killed: check that a
	// process with both PID and Start lives.
	PID   int
	Start uint64
	// Assigned says that no file names the process: it is the only one of its kind in the directory. It may run another
	// session.
	Assigned bool

	Status     Status
	WaitingFor Wait
	StatusAt   time.Time // since when it has this status; zero: unknown
	Turn       Turn

	// Unread is what of its transcript could not be read, and may show something else. "": nothing.
	Unread string
	// Unfinished says that this is only its last line. Its process is still writing it, the disk is full, or the process
	// has ended meanwhile: then there is nothing more to come.
	Unfinished bool

	// Subagent says that it was started by another session of the same process.
	Subagent bool
	// SubagentAt is when one of its subagents last wrote to its own transcript. It is determined only while a tool
	// that runs subagents is open.
	SubagentAt time.Time
}

// Status is what a session is doing.
type Status string

// The statuses.
const (
	Unknown  Status = ""
	Idle     Status = "idle"     // at its prompt
	Busy     Status = "busy"     // in a turn, even if it hangs
	Waiting  Status = "waiting"  // for a human
	Retrying Status = "retrying" // its model answers with errors, and it retries
)

// Wait is what a waiting session waits for.
type Wait string

// The waits. "" is none, or an unknown one.
const (
	ForPermission Wait = "permission"
	ForQuestion   Wait = "question"
	ForDialog     Wait = "dialog" // trust, login, a limit, a new model, an MCP server
)

// Open is what a transcript waits for.
type Open string

// The values of Open.
const (
	Nothing  Open = ""
	Model    Open = "model"
	Tool     Open = "tool"
	Question Open = "question" // a tool that asks the human
	Plan     Open = "plan"     // a plan that the human has to accept
	// Permission is a call that asks for more rights and has no output. Codex records nothing when the human has
	// agreed, so that a long call that was allowed looks the same.
	Permission Open = "permission"
)

// Turn is the present turn, or the last one, according to the transcript.
type Turn struct {
	// Sequence increases with every relevant record: only a greater one is new evidence. It is the length read
	// (bytes) or, for a database, the time of the last change (Unix milliseconds).
	Sequence int64
	LastAt   time.Time // time of that record, by the agent's clock

	Open   Open
	OpenAt time.Time // since when. For the model: since its last output, regardless of retries; for a call that sleeps: since its end
	Tool   string    // the name of the open call; "a tool" or the like where that is not written before its end
	// ToolInput is the relevant part of its arguments: the command, the question, the path. It is shortened, and may
	// contain secrets.
	ToolInput string

	Ended       bool // the turn is over, and no other has begun
	EndedAsking bool // and its last text ends with a question
	Interrupted bool // and a human has interrupted it
	// WakesItself says that the session has asked its CLI to call the model later. At rest its process lives on.
	WakesItself bool
	LastText    string

	// TypedAt is when a turn was last begun, ended or answered by the source of the agent's prompts: in a session at
	// a terminal, a person. Zero: not seen.
	TypedAt time.Time

	Error   Failure // the model's last answer, or part of the turn's end; Kind is "" if anything has followed
	Repeats Repeats

	// Tokens and Turns are those so far; where reading began in the middle, from there.
	Tokens  int64
	CostUSD float64 // if the CLI writes it; 0: unknown
	Turns   int

	// ProgressAt is when a file was last edited, something was committed, a call had a result that it did not have
	// before in the turn, or a call of a minute or more succeeded; not before a person last typed. Zero: not seen.
	ProgressAt time.Time

	// Tasks are the background tasks since the user's last prompt whose end the session has not learnt. Only Claude
	// Code shows them.
	Tasks []Task
}

// FailureKind is the kind of an error.
type FailureKind string

// The kinds.
const (
	NoFailure       FailureKind = ""
	APIFailure      FailureKind = "api"        // overloaded, 5xx, network
	RateLimited     FailureKind = "rate_limit" // 429, usage limit
	CreditEmpty     FailureKind = "credit"     // the account has no credit
	AuthFailure     FailureKind = "auth"       // 401, 403, login expired
	ContextFull     FailureKind = "context"    // the conversation is too long for the model
	ExecutionFailed FailureKind = "execution"  // anything else that ended the turn
)

// Failure is an error that a session shows.
type Failure struct {
	Kind   FailureKind
	Status int    // HTTP status; 0: unknown
	Text   string // shortened
	At     time.Time

	Attempt int       // number of the next or present retry; 0: none
	Max     int       // maximum number of retries; 0: unknown
	RetryAt time.Time // time of the next retry; zero: unknown
	Until   time.Time // end of a limit; zero: unknown
	Final   bool      // it ended the turn
}

// Repeats counts repetitions with nothing else in between.
type Repeats struct {
	SameCall    int `json:"same_call,omitempty"`   // the same tool, arguments and result
	SameError   int `json:"same_error,omitempty"`  // the same error
	Alternating int `json:"alternating,omitempty"` // A, B, A, B: pairs
}

// Process is a living process, as the caller knows it.
type Process struct {
	Kind  Kind
	PID   int
	Start uint64    // its start time in the system's own units
	Began time.Time // the same by the clock; zero: unknown
	Dir   string    // its working directory; "": unknown
}
