package backend

import (
	"cmp"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/health"
	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/tracecontext"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// Surrogates says how a client line with a lone surrogate escape such as \ud800 is handled.
type Surrogates string

// The three ways (Reject is TP-5).
const (
	RejectSurrogates  Surrogates = "reject"  // -32602 to its id
	ReplaceSurrogates Surrogates = "replace" // by \ufffd, then sent on
	PassSurrogates    Surrogates = "pass"    // sent on as it is
)

// Reload is how a planned restart is done.
type Reload string

// The two ways.
const (
	// OverlapReload starts the new process beside the old one and switches between two messages.
	OverlapReload Reload = "overlap"
	// ReplaceReload ends the old process first, for servers that hold an exclusive resource.
	ReplaceReload Reload = "replace"
)

// Options are a backend's settings. The zero value of each field is its default.
type Options struct {
	Name    string   // shown in status and errors
	Command []string // shown in errors; Start knows how to run it

	Supervise supervise.Options // backoff, exit codes, grace periods, number of spares; InstallGrace is set by the Command
	Reload    Reload            // how a planned restart goes (default overlap)

	NoTools     bool       // inject no tools
	Surrogates  Surrogates // default reject
	LostAsError bool       // answer a call of unknown outcome with an error instead of a tool result
	Distrust    bool       // do not believe tool annotations: no call is ever sent twice
	RetryTools  []string   // names of tools that may always be sent again

	QueueFor time.Duration // how long a request waits for a server (default 25 s, under every client's own 60 s)
	QueueMax int           // requests waiting at most (default 1024)

	ProbeSilence  time.Duration // a server that has read a probe and says nothing this long is legacy (default 2 s); not of a Remote one
	ProbePatience time.Duration // a server that has not even read it this long is not waited for (default 30 s; of a Remote one at most 8 s)
	// ListenPatience is how long a server that was asked for its first stream may answer nothing (default 5 s).
	ListenPatience time.Duration

	Health health.Options // when a silent server counts as hung
	// CallPatience is how long a client that asked for progress is told that a call goes on of which its server says
	// nothing (default 0: it is not told).
	CallPatience time.Duration
	Remote       bool   // a connection to a remote server instead of a process
	Elsewhere    bool   // the command only represents a server that runs elsewhere, as docker run does
	Limits       Limits // what one process may take

	NoBridge  bool   // eras are not translated where one side does not speak the other's
	BridgeKey []byte // seals what a bridged client carries between two rounds: 32 random bytes of this process
	Shared    bool   // several modern clients share the server: questions and notifications must reach only the right one
	// Whose tells of a gateway whose a raw request id or progress token is: what is shown, and for whom a round of a call goes on if
	// the server is shared. nil, of one that is not shared, or unknown ids: no particular client's.
	Whose  func(about []byte) Whose
	Pinned bool // the client depends on its era: if the server does not speak it, it must be bridged

	Trace *tracecontext.Source // makes spans of requests, whose context the server is told; nil: messages stay as they are

	Replays     []Replay      // tool calls repeated to each new process before it serves
	NoFastStart bool          // answer nothing from what earlier runs have shown
	Lazy        bool          // start the server only for a request that cannot be answered from memory
	IdleFor     time.Duration // let the server sleep when nobody has used it this long; 0: never

	Known Knowledge // what earlier runs of this command have shown

	Tap *tap.Tap // who watches the messages; nil: nobody can
}

// RemoteProbePatience is the longest [Options.ProbePatience] of a server elsewhere, which may hold a request for ever. One that is started
// here may take its time: it is only slow, and another process would be no faster.
const RemoteProbePatience = 8 * time.Second

// principal tells a bridge which of many clients has sent a request; nil if there is one client.
func (o Options) principal() func(id []byte) string {
	if !o.Shared {
		return nil
	}
	return func(id []byte) string { return o.Whose(id).Principal }
}

func (o Options) withDefaults() Options {
	o.QueueFor = cmp.Or(o.QueueFor, 25*time.Second)
	o.ProbeSilence = cmp.Or(o.ProbeSilence, 2*time.Second)
	o.ProbePatience = cmp.Or(o.ProbePatience, 30*time.Second)
	if o.Remote {
		o.ProbePatience = min(o.ProbePatience, RemoteProbePatience)
	}
	if launcher.Installs(o.Command) != "" {
		o.Supervise.InstallGrace = cmp.Or(o.Supervise.InstallGrace, launcher.UndoTime)
	}
	o.ListenPatience = cmp.Or(o.ListenPatience, 5*time.Second)
	o.QueueMax = cmp.Or(o.QueueMax, 1024)
	o.Reload = cmp.Or(o.Reload, OverlapReload)
	o.Surrogates = cmp.Or(o.Surrogates, RejectSurrogates)
	return o
}
