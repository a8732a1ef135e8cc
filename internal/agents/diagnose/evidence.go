package diagnose

import "github.com/outlive-mcp/outlive/internal/agents/agentcli"

// Evidence is everything that is known of one agent at one look. It is plain data. The JSON names must not change,
// because later versions judge old logs again. Ages do not count the time that the machine slept, so that a night
// asleep is not silence. The zero value of a section means that nothing is known of it.
type Evidence struct {
	Status   string `json:"status,omitempty"`   // the registry's text for its status, for people
	Watched  bool   `json:"watched,omitempty"`  // it should be running, and this monitor watches it
	Paused   bool   `json:"paused,omitempty"`   // its owner has paused it
	Complete bool   `json:"complete,omitempty"` // the registry calls its work complete
	Fault    string `json:"fault,omitempty"`    // why its registry entry cannot be judged
	Lost     string `json:"lost,omitempty"`     // why the registry cannot be read
	Vanished bool   `json:"vanished,omitempty"` // its entry was removed from the registry while it was running

	Beat     Beat      `json:"beat,omitzero"`
	Process  Proc      `json:"process,omitzero"`
	Exit     Exit      `json:"exit,omitzero"`
	Done     string    `json:"done,omitempty"` // what marks the work as done, such as a file; "": no mark was seen
	Artefact Artefact  `json:"artefact,omitzero"`
	Manifest Manifest  `json:"manifest,omitzero"`
	Sessions []Session `json:"sessions,omitempty"`
	// Nested are the sessions of agent CLIs that it runs itself, such as a reviewer. They show that something of it is at
	// work; what they ask, fail with or end with is not its own.
	Nested []Session `json:"nested,omitempty"`
	// LastError is the last event in the session of a process that has ended, if that is an error. The cause still
	// matters after the end.
	LastError SessionError `json:"last_error,omitzero"`
	Hooks     []Request    `json:"hooks,omitempty"` // open permission requests of its hook
	Title     Title        `json:"title,omitzero"`
	Output    Output       `json:"output,omitzero"`
	CPU       CPU          `json:"cpu,omitzero"`
	// Servers are the calls that it waits for at MCP servers which outlive keeps alive.
	Servers []ServerCall `json:"servers,omitempty"`

	Grace string `json:"grace,omitempty"` // why silence is not evidence now; "": it is
	// GraceDead says that a missing process is not evidence either. The machine has only just started, or the process has
	// only just ended and its wrapper has yet to say how.
	GraceDead bool `json:"grace_dead,omitempty"`
	// Missing are sources that should be there and cannot be read at this look, or not completely.
	Missing []Source `json:"missing,omitempty"`
	// Unread says what of them was not read and why, for people.
	Unread     []string `json:"unread,omitempty"`
	BlindTicks int      `json:"blind_ticks,omitempty"` // looks in a row before this one that could not be judged
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
	FromServers  Source = "servers"
)

// State is an agent's report of its own state.
type State string

// The states. "" is a beat that says only that the agent is alive.
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
	// Expected says that it should beat, because it is declared so or is a project of a PIV registry.
	Expected bool   `json:"expected,omitempty"`
	Age      Span   `json:"age,omitzero"`  // negative: its time is in the future
	Seen     Span   `json:"seen,omitzero"` // since this beat was first seen: its age if its time is in the future
	State    State  `json:"state,omitempty"`
	Note     string `json:"note,omitempty"`
	Next     Span   `json:"next,omitzero"` // promised time until the next beat; 0: no promise
}

// Life is whether a process lives.
type Life string

// The values of Life.
const (
	Unknown Life = "" // it is not known which process it is
	Alive   Life = "alive"
	Dead    Life = "dead"   // proven: there is none, or its pid belongs to another process
	Unsure  Life = "unsure" // it may be another process, or the system denies access
)

// Proc is the agent's process, identified by more than its pid.
type Proc struct {
	Life   Life   `json:"life,omitempty"`
	Detail string `json:"detail,omitempty"` // such as "PID 7 is alive", for people
	Age    Span   `json:"age,omitzero"`     // since it was started
	Gone   Span   `json:"gone,omitzero"`    // time since its end was seen; 0: just now, or unknown
	// AfterBeat says that it was started after the latest beat, which is then about an earlier process, or that there
	// is no beat.
	AfterBeat bool `json:"after_beat,omitempty"`
	Headless  bool `json:"headless,omitempty"` // its CLI works on one prompt and exits, such as claude -p
	Scripted  bool `json:"scripted,omitempty"` // and a script runs that, which goes on when it has exited
	Bare      bool `json:"bare,omitempty"`     // it is a script that runs no CLI now: before the first one, or between two
	Stopped   bool `json:"stopped,omitempty"`  // by job control: SIGSTOP, or Ctrl-Z at its terminal
	Orphaned  bool `json:"orphaned,omitempty"` // the process that started it, its wrapper or terminal, has ended
}

// Exit is how this process ended, where that is known from a wrapper, a parent or a ping.
type Exit struct {
	Known  bool   `json:"known,omitempty"`
	Code   int    `json:"code,omitempty"`
	Signal string `json:"signal,omitempty"` // such as "killed"; "": it was not ended by a signal
	Limit  string `json:"limit,omitempty"`  // the limit of its own at which it has ended, as its output says; "": none
}

// Artefact is the first thing that an agent of this kind writes once it runs: a session file, a transcript, a beat.
type Artefact struct {
	Expected bool `json:"expected,omitempty"` // this kind writes one, and its place was checked
	Seen     bool `json:"seen,omitempty"`     // it was written since this process was started
}

// Manifest is what the manifest of a project shows (PIV-4).
type Manifest struct {
	Has      bool      `json:"has,omitempty"`
	Fault    string    `json:"fault,omitempty"` // why it cannot be read
	Dated    bool      `json:"dated,omitempty"` // it contains the time at which it was written
	Age      Span      `json:"age,omitzero"`    // since then
	Complete bool      `json:"complete,omitempty"`
	Failures []Failure `json:"failures,omitempty"` // pending ones
	Blocking []string  `json:"blocking,omitempty"` // texts of blocking notifications without an acknowledgement
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

// Request is an open permission request of one of the agent's hooks.
type Request struct {
	Tool string `json:"tool,omitempty"`
	Text string `json:"text,omitempty"` // the command, shortened and without secrets
	Age  Span   `json:"age,omitzero"`
}

// Title is what the title of the agent's terminal says.
type Title struct {
	Status agentcli.Status `json:"status,omitempty"` // unknown if the title does not show it
	Text   string          `json:"text,omitempty"`
	Age    Span            `json:"age,omitzero"` // time since it changed to this status
}

// Output is the agent's output as its wrapper sees it.
type Output struct {
	Known bool `json:"known,omitempty"`
	Age   Span `json:"age,omitzero"` // since the last byte
	// Drawn is how long its terminal has only drawn again what it had shown before, such as a spinner. 0: it has not.
	Drawn Span `json:"drawn,omitzero"`
}

// text is the time since it last wrote something new.
func (o Output) text() Span { return max(o.Age, o.Drawn) }

// CPU is what the agent's descendants have used over the last window. The agent's own use is no evidence: an agent
// that hangs uses as little as one that waits for its model (measured: 0.02 s in 30 s).
type CPU struct {
	Known bool    `json:"known,omitempty"`
	Share float64 `json:"share,omitempty"` // of one core
	// Starts says that a new process was started within the window, as in a build that runs many compilers. That is
	// work by itself, since the CPU use of processes that have ended is not known.
	Starts bool `json:"starts,omitempty"`
	// Worked says that they have been seen working; Idle is the time since then.
	Worked bool `json:"worked,omitempty"`
	Idle   Span `json:"idle,omitzero"`
	// Pending says that it will be known soon: there is one reading, and the next one is still to come.
	Pending bool `json:"pending,omitempty"`
}

// Works reports whether that is work.
func (c CPU) Works() bool { return c.Known && (c.Starts || c.Share >= cpuIdle) }
