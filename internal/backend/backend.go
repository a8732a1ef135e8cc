package backend

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/bridge"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/health"
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/restart"
	"github.com/outlive-mcp/outlive/internal/session"
	"github.com/outlive-mcp/outlive/internal/supervise"
	"github.com/outlive-mcp/outlive/internal/wire"
)

// World is what a backend acts on besides its [Server] processes. Lines are given without newline. Forward takes a
// slice of the line that is being handled and need not copy it; Send must copy.
type World interface {
	ForwardToClient(line []byte)
	SendToClient(line []byte)
	// Flush writes what was sent now, because what follows takes time.
	Flush()

	// Keep makes a long line that is being handled outlast the call; the hold is released by the backend.
	Keep(line []byte) (hold *wire.Hold, kept []byte)
	// Passed tells that the first n bytes of a long line that is being handled have been scanned.
	Passed(line []byte, n int)

	// Start starts a process. Its output comes back as ServerLine, its end as ServerExited and ServerClosed. One beside another may be Unborn when Start returns, and keeps what it is given and told
	// until it exists: then comes ServerSpawned, or its end with the error in it.
	Start(Launch) (Server, error)
	// Finish ends the whole connection: nothing more will be kept alive. code is outlive's exit status.
	Finish(code int)

	// Noise takes a line of the server's stdout that is no message: it belongs on stderr.
	Noise(line []byte)
	// Marker reads and writes the restart marker file (S1).
	WriteMarker(m restart.MarkerRecord) error
	ReadMarker() (restart.MarkerRecord, error)
	MarkerPath() string
	// Remember keeps what was learned about the command for the next run of it.
	Remember(k Knowledge)
	// Rand returns a number in [0,1) for jitter.
	Rand() float64
}

// Surrogates says what happens to a client's line with a lone surrogate escape such as \ud800.
type Surrogates string

// The three ways (S3 "Validation Levels"; Reject is S3's).
const (
	RejectSurrogates  Surrogates = "reject"  // -32602 to its id
	ReplaceSurrogates Surrogates = "replace" // by \ufffd, then sent on
	PassSurrogates    Surrogates = "pass"    // sent on as it is
)

// Reload is how a planned restart goes.
type Reload string

// The two ways.
const (
	// OverlapReload starts the new process beside the old one and switches between two messages.
	OverlapReload Reload = "overlap"
	// ReplaceReload ends the old process first, for servers that hold something only one can have.
	ReplaceReload Reload = "replace"
)

// Options are a backend's settings. The zero value of each field is its default.
type Options struct {
	Name    string   // shown in status and errors
	Command []string // shown in errors; Start knows how to run it

	Supervise supervise.Options // backoff, exit codes, grace periods, number of spares
	Reload    Reload            // how a planned restart goes (default overlap)

	NoTools     bool       // inject no tools
	Surrogates  Surrogates // default reject
	LostAsError bool       // answer a call of unknown outcome with an error instead of a tool result
	Distrust    bool       // do not believe tool annotations: no call is ever sent twice
	RetryTools  []string   // names of tools that may always be sent again

	QueueFor  time.Duration // how long a request waits for a server (default 25 s, under every client's own 60 s)
	QueueMax  int           // requests waiting at most (default 1024)
	QueueSize int           // bytes waiting at most (default 64 MiB)

	ProbeSilence  time.Duration // a server that has read a probe and says nothing this long is legacy (default 2 s)
	ProbePatience time.Duration // a server that has not even read it this long is legacy (default 8 s)
	// ListenPatience is how long a server that was asked for its first stream may answer nothing (default 5 s).
	ListenPatience time.Duration
	FirstTries     int           // failed first starts before initialize is answered with the error (default 3)
	FirstPatience  time.Duration // or this long after the client asked (default 10 s)

	Health    health.Options // when a silent server counts as hung
	Remote    bool           // there is no process but a connection to a server elsewhere
	Elsewhere bool           // the command only stands for a server that runs elsewhere, as docker run does
	Limits    Limits         // what one process may take

	Bridge    bridge.Setting // whether eras are translated where one side does not speak the other's (default auto)
	BridgeKey []byte         // seals what a bridged client carries between two rounds: 32 random bytes of this process
	Crowd     bool           // modern clients are many: what a bridge is asked or told must reach none but the right one
	Pinned    bool           // the client goes no further where its era is not spoken: it has to be bridged

	Replays     []Replay      // tool calls repeated to each new process before it serves
	NoFastStart bool          // answer nothing from what earlier runs have shown
	Lazy        bool          // start the server only when something is asked that is not known already
	IdleFor     time.Duration // let the server sleep when nobody has used it this long; 0: never

	Known Knowledge // what earlier runs of this command have shown
}

// DefaultProbePatience is the default of [Options.ProbePatience].
const DefaultProbePatience = 8 * time.Second

// Backend keeps one server alive behind one client.
type Backend struct {
	opts  Options
	world World
	sink  event.Sink
	now   time.Time // of the call being handled

	machine *supervise.Machine
	session session.Session
	seam    *seam            // where the client may have to be bridged; nil: it has not
	env     jsonrpc.Envelope // scratch of the line being handled

	calls   calls
	private map[string]*question // what outlive itself asked, by raw id
	asks    asks
	timers  [timerCount]time.Time
	prefix  string // of ids outlive makes up
	lastID  int

	process      *process               // the serving one
	beside       []*process             // spares and retired ones
	later        []supervise.SpawnSpare // spares put off for a moment
	tookOver     time.Time              // when a spare last took over
	told         bool                   // the machine was told that processes can be brought up without the client
	introduction string                 // DiscoverResult of the last modern process that served
	probe        probe
	reader       mcp.Reader // of every list
	tools        toolbox
	doubted      [mcp.Lists]bool // lists to be looked at again
	babble       babble
	health       *health.Watch // of the serving process, from when it serves
	deaf         bool          // the server answers everything but ping
	used         usage
	lastUse      time.Time // the client wanted something of the server
	replays      [][]byte  // arguments of the last calls of the client, parallel to Options.Replays
	first        firstStart
	failedInit   []byte // raw params of an initialize that was answered with an error: the next process is asked for nobody
	states       requestStates
	cut          []cutShort // listen ends held back until it is clear whether the server died
	taskTokens   [][]byte   // raw progress tokens that live on in tasks
	tasks        []task     // of the server, oldest first
	closing      bool       // the client closed its end
	over         bool       // the machine is finished; the last processes are waited for
	stopped      bool       // Finish was called
	code         int        // to finish with
	lastOut      lastExit
	turns        int           // how often the server has changed its era since a process of it has served
	estranged    mcp.Era       // all that the server speaks now, where its client does not and nothing is translated
	misfortune   reloadFailure // of the last planned restart that came to nothing
	startup      time.Duration // of the last process that could serve
	readyAt      time.Time     // wall clock of the last time a process became the serving one
	begun        time.Time     // when the running restart was initiated; zero if none runs
	cause        string        // of the running restart
	scanned      []byte        // the line that env is being scanned from, for the world to drop its pages

	events      []supervise.Event // not yet given to the machine
	stepping    bool
	closeWanted bool // the server's stdin is to be closed once nothing waits for it
}

// lastExit is how the last process ended.
type lastExit struct {
	code   int // -1: it could not be started
	shell  int // then what a shell would exit with, 126 or 127; 0: another try may succeed
	signal string
	at     time.Time
	why    string // in words, after "the server"
	ended  string // why outlive ended it, if it had failed; "" if it ended by itself
	stderr []string

	kind endKind
}

// endKind is what has ended.
type endKind uint8

const (
	processEnded    endKind = iota
	neverStarted            // the process could not be started, and why says so
	connectionEnded         // it was a connection to a server elsewhere: code is -1, and why says all there is to say
)

// The timers, each with one meaning.
type timer int

const (
	timerQueue  timer = iota // look for requests that have waited too long
	timerProbe               // the probe has had its time
	timerVerify              // verify_server_restarted has waited long enough
	timerSettle              // the server has had its time to show its tools
	timerNoise               // a message in several lines has had its time
	timerCut                 // a listen end is released to the client
	timerDoubt               // doubted lists are looked at
	timerLearn               // the server's tools are read, if nobody has
	timerIdle                // nobody may have used the server for long enough
	timerLater               // spares that were put off are started
	timerLimits              // memory and age are looked at
	timerFirst               // the client's patience with the first start is over
	timerCount
)

// New returns a backend that acts on w and tells sink what happens. Call [Backend.Open] to start its first process.
func New(opts Options, w World, sink event.Sink) *Backend {
	opts = opts.withDefaults()
	b := &Backend{
		opts: opts, world: w, sink: sink,
		machine: supervise.New(opts.Supervise),
		private: map[string]*question{},
		prefix:  "~p",
		process: &process{}, introduction: string(opts.Known.Discover),
	}
	b.calls.init()
	b.asks.init()
	b.tools.init(!opts.NoTools)
	b.env.Behind = func(upTo int) { w.Passed(b.scanned, upTo) }
	b.beginSeam()
	return b
}

func (o Options) withDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.QueueFor, 25*time.Second)
	def(&o.ProbeSilence, 2*time.Second)
	def(&o.ProbePatience, DefaultProbePatience)
	def(&o.FirstPatience, 10*time.Second)
	def(&o.ListenPatience, 5*time.Second)
	if o.QueueMax == 0 {
		o.QueueMax = 1024
	}
	if o.QueueSize == 0 {
		o.QueueSize = 64 << 20
	}
	if o.FirstTries == 0 {
		o.FirstTries = 3
	}
	if o.Reload == "" {
		o.Reload = OverlapReload
	}
	if o.Surrogates == "" {
		o.Surrogates = RejectSurrogates
	}
	return o
}

// Deadline returns when [Backend.Tick] wants to be called; the zero time means not at all.
func (b *Backend) Deadline() time.Time {
	at := b.machine.Deadline()
	if t := b.healthDeadline(); at.IsZero() || !t.IsZero() && t.Before(at) {
		at = t
	}
	for _, t := range b.timers {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for p := range b.all {
		if t := p.deadline(); !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if b.seam != nil {
		if t := b.seam.deadline(); at.IsZero() || !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	return at
}

// Tick lets everything happen whose time has come.
func (b *Backend) Tick(now time.Time) {
	b.now = now
	for t := range timerCount {
		if at := b.timers[t]; !at.IsZero() && !now.Before(at) {
			b.timers[t] = time.Time{}
			b.expire(t)
		}
	}
	for _, p := range append([]*process{b.process}, b.beside...) {
		b.processTick(p)
	}
	b.healthTick()
	b.act(b.machine.Tick(now, b.world.Rand()))
	if b.seam != nil {
		b.seam.tick()
		b.settle()
	}
}

func (b *Backend) expire(t timer) {
	switch t {
	case timerQueue:
		b.expireQueue()
	case timerProbe:
		b.probeTick()
	case timerVerify:
		b.answerVerify(true)
	case timerSettle:
		b.settleCalls()
	case timerNoise:
		b.flushNoise()
	case timerCut:
		b.releaseCut()
	case timerDoubt:
		b.settleDoubts()
	case timerLearn:
		b.learnTools()
	case timerIdle:
		b.checkIdle()
	case timerLater:
		b.spawnLater()
	case timerLimits:
		b.checkLimits()
	case timerFirst:
		b.giveUpFirst()
	}
}

func (b *Backend) arm(t timer, after time.Duration) { b.timers[t] = b.now.Add(after) }
func (b *Backend) disarm(t timer)                   { b.timers[t] = time.Time{} }

// emit tells the sink of something about the serving process or none. It is kept off the hot path: an event allocates.
func (b *Backend) emit(t event.Type, level slog.Level, message string, attrs ...slog.Attr) {
	b.emitOf(b.process, t, level, message, attrs...)
}

// emitOf tells the sink of something about p.
func (b *Backend) emitOf(p *process, t event.Type, level slog.Level, message string, attrs ...slog.Attr) {
	pid := 0
	if p.up {
		pid = p.pid
	}
	b.sink.Emit(event.Event{
		Type: t, Time: b.now, Level: level, Message: message,
		Generation: p.gen, ServerPID: pid, RestartCount: b.machine.Restarts(), Attrs: attrs,
	})
}

// newID makes up a raw request id that no client uses, for a line to process gen.
func (b *Backend) newID(gen int) []byte {
	b.lastID++
	return fmtID(b.prefix, gen, b.lastID)
}
