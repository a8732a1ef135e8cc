package diagnose

// Evidence is everything that is known of one agent at one look. It is plain data; the JSON names are stable, because
// logs of it are judged again by later versions. Every age is the time that the machine was awake, so that a night
// asleep is not silence. The zero value of a section means that nothing is known of it.
type Evidence struct {
	Status   string `json:"status,omitempty"`   // the registry's word for it, for people
	Watched  bool   `json:"watched,omitempty"`  // it ought to be running, and it is ours to watch
	Paused   bool   `json:"paused,omitempty"`   // its owner has paused it
	Complete bool   `json:"complete,omitempty"` // the registry calls its work complete
	Fault    string `json:"fault,omitempty"`    // why its entry cannot be judged
	Lost     string `json:"lost,omitempty"`     // why the registry does not show what it does now: it cannot be read
	Vanished bool   `json:"vanished,omitempty"` // the registry can be read, and no longer has it, although it was running

	Beat     Beat      `json:"beat,omitzero"`
	Process  Proc      `json:"process,omitzero"`
	Exit     Exit      `json:"exit,omitzero"`
	Done     string    `json:"done,omitempty"` // what marks the work as done, such as a file; "": no mark was seen
	Artefact Artefact  `json:"artefact,omitzero"`
	Manifest Manifest  `json:"manifest,omitzero"`
	Sessions []Session `json:"sessions,omitempty"`
	// LastError is the last thing that happened in the session of a process that has ended, where that is an error: the cause
	// outlives the process.
	LastError SessionError `json:"last_error,omitzero"`
	Hooks     []Request    `json:"hooks,omitempty"` // open permission requests that its hook holds
	Title     Title        `json:"title,omitzero"`
	Output    Output       `json:"output,omitzero"`
	CPU       CPU          `json:"cpu,omitzero"`

	Grace string `json:"grace,omitempty"` // why silence is not evidence now; "": it is
	// GraceDead says that a missing process is not evidence either: the machine was started only just.
	GraceDead bool `json:"grace_dead,omitempty"`
	// Missing are sources that there were before, or ought to be, and that cannot be read at this look.
	Missing    []Source `json:"missing,omitempty"`
	BlindTicks int      `json:"blind_ticks,omitempty"` // looks in a row, before this one, that could not be judged
}

// Source is where a part of the evidence comes from.
type Source string

// The sources, by the sections they fill.
const (
	FromBeat     Source = "beat"
	FromProcess  Source = "process"
	FromExit     Source = "exit"
	FromDone     Source = "done"
	FromArtefact Source = "artefact"
	FromManifest Source = "manifest"
	FromSessions Source = "sessions"
	FromHooks    Source = "hooks"
	FromTitle    Source = "title"
	FromOutput   Source = "output"
	FromCPU      Source = "cpu"
)

// State is what an agent says of itself.
type State string

// The states. "" is a beat that says nothing but that somebody lives.
const (
	Working  State = "working"
	Waits    State = "waiting"
	Idles    State = "idle"
	Stuck    State = "stuck"
	Exiting  State = "exiting"
	Finished State = "done"
)

// Beat is the latest heartbeat that the agent itself has sent: a file, a ping, a registry entry.
type Beat struct {
	Has bool `json:"has,omitempty"`
	// Expected says that it should beat: by its declaration, or as every project of a PIV registry.
	Expected bool   `json:"expected,omitempty"`
	Age      Span   `json:"age,omitzero"`  // negative: it is dated in the future
	Seen     Span   `json:"seen,omitzero"` // since this very beat was first seen, by our clock: the age of one of the future
	State    State  `json:"state,omitempty"`
	Note     string `json:"note,omitempty"`
	Next     Span   `json:"next,omitzero"` // how long after this beat the next one may take, as promised; 0: nothing is promised
}

// Life is what is known of a process.
type Life string

// The lives.
const (
	Unknown Life = "" // nobody has told which process it is
	Alive   Life = "alive"
	Dead    Life = "dead"   // there is none, or the number is another's: proven
	Unsure  Life = "unsure" // the process cannot be told from another, or the system does not let us ask
)

// Proc is the agent's process: an identity, never only a number.
type Proc struct {
	Life   Life   `json:"life,omitempty"`
	Detail string `json:"detail,omitempty"` // such as "PID 7 is alive", for people
	Age    Span   `json:"age,omitzero"`     // since it was started
	Gone   Span   `json:"gone,omitzero"`    // since it was seen to have ended; 0: seen just now, or unknown
	// AfterBeat says that it was started after the latest beat, which says nothing of it then, or that there is no beat.
	AfterBeat bool `json:"after_beat,omitempty"`
	Stopped   bool `json:"stopped,omitempty"`  // job control has stopped it: SIGSTOP, or Ctrl-Z at its terminal
	Orphaned  bool `json:"orphaned,omitempty"` // what had started it, its wrapper or terminal, has ended
}

// Exit is how the process ended, where that is known: from a wrapper, a parent or a ping. It is this process's.
type Exit struct {
	Known  bool   `json:"known,omitempty"`
	Code   int    `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"` // such as "killed"; "": it ended by itself
}

// Artefact is the first thing that an agent of this kind leaves once it runs: a session file, a transcript, a beat.
type Artefact struct {
	Expected bool `json:"expected,omitempty"` // this kind leaves one, and the place was looked at
	Seen     bool `json:"seen,omitempty"`     // since this process was started
}

// Manifest is what the manifest of a project shows (PIV-4).
type Manifest struct {
	Has      bool      `json:"has,omitempty"`
	Fault    string    `json:"fault,omitempty"` // why it cannot be read
	Dated    bool      `json:"dated,omitempty"` // it says when it was written
	Age      Span      `json:"age,omitzero"`    // since then
	Complete bool      `json:"complete,omitempty"`
	Failures []Failure `json:"failures,omitempty"` // those that are pending
	Blocking []string  `json:"blocking,omitempty"` // blocking notifications that nobody has acknowledged, as text
}

// Failure is a pending entry of a manifest's failures.
type Failure struct {
	Category   string `json:"category,omitempty"` // such as integration_auth
	Command    string `json:"command,omitempty"`
	Phase      *int   `json:"phase,omitempty"`
	Retries    int    `json:"retries,omitempty"`
	MaxRetries int    `json:"max_retries,omitempty"`
	Details    string `json:"details,omitempty"`
}

// Request is a permission request that a hook of the agent holds open.
type Request struct {
	Tool string `json:"tool,omitempty"`
	Text string `json:"text,omitempty"` // the command, shortened and without secrets
	Age  Span   `json:"age,omitzero"`
}

// Title is what the title of the agent's terminal says.
type Title struct {
	Status Status `json:"status,omitempty"` // unknown where the title says nothing
	Text   string `json:"text,omitempty"`
	Age    Span   `json:"age,omitzero"` // since it changed to this status
}

// Output is what the wrapper around the agent has seen of its output, without the animation of a terminal program.
type Output struct {
	Known bool `json:"known,omitempty"`
	Age   Span `json:"age,omitzero"` // since the last byte
}

// CPU is what the agent's descendants have used over the last window. Its own tells nothing: an agent that hangs uses as
// little as one that waits for its model (measured: 0.02 s in 30 s).
type CPU struct {
	Known bool    `json:"known,omitempty"`
	Share float64 `json:"share,omitempty"` // of one core
	// Starts says that something new was started within the window: a build, whose compilers come and go. It is work by
	// itself, and the share of those that have ended is not known.
	Starts bool `json:"starts,omitempty"`
	// Worked says that they have been seen at work, and Idle for how long they have not been since.
	Worked bool `json:"worked,omitempty"`
	Idle   Span `json:"idle,omitzero"`
}

// Works reports whether that is work, by the default share.
func (c CPU) Works() bool { return c.Known && (c.Starts || c.Share >= Policy{}.filled().CPUIdle) }
