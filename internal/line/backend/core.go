package backend

import (
	"bytes"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/protocol/session"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/tap"
)

// core is what all parts of a backend look at: the call being handled, the processes, the client's session, tables that
// decide nothing, and the parts themselves. A part embeds it, and holds besides what is its own.
type core struct {
	opts   Options
	world  World
	client Client // a bridge stands before it, if client and server speak different eras
	arrays *arrays
	sink   event.Sink
	now    time.Time        // of the call being handled
	env    jsonrpc.Envelope // scratch of the line being handled
	timers [timerCount]time.Time
	reader mcp.Reader // of every list

	machine *supervise.Machine // asked here; lifecycle.step alone tells it something
	process *process           // the serving one
	beside  []*process         // spares and retired ones

	session    session.Session
	undeclared bool   // the server answers for tools that it does not declare
	failedInit []byte // raw params of an initialize that was answered with an error: the next process is asked for nobody
	closing    bool   // the client closed its end
	signalled  bool   // outlive itself was told to end, which is closing, too
	over       bool   // the machine is finished; the last processes are waited for
	stopped    bool   // Finish was called

	calls     calls
	questions questions
	asks      asks
	memory    memory
	history   history
	tally     tally
	showing   showing

	reconnects reconnects

	backend   *Backend // takes the messages that a part makes, or holds back
	flow      flow
	handshake handshake
	replay    replay
	eras      eras
	prober    prober
	lists     lists
	tools     restartTools
	streams   streams
	states    requestStates
	tasks     tasks
	noiseLog  noiseLog
	mender    mender
	health    healthWatch
	long      longCalls
	limits    limits
	spares    spares
	life      lifecycle
}

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
	timerLong                // calls of which nothing is heard are looked at
	timerCount
)

func (c *core) arm(t timer, after time.Duration) { c.timers[t] = c.now.Add(after) }
func (c *core) disarm(t timer)                   { c.timers[t] = time.Time{} }

// emit tells the sink of something about the serving process or none. It is kept off the hot path: an event allocates.
func (c *core) emit(t event.Type, level slog.Level, message string, attrs ...slog.Attr) {
	c.emitOf(c.process, t, level, message, attrs...)
}

// emitOf tells the sink of something about p.
func (c *core) emitOf(p *process, t event.Type, level slog.Level, message string, attrs ...slog.Attr) {
	pid := 0
	if p.up() {
		pid = p.pid
	}
	if c.opts.Remote {
		level = c.reconnects.level(c.now, t, level)
	}
	e := event.Event{
		Type: t, Time: c.now, Level: level, Message: message,
		Generation: p.gen, ServerPID: pid, Attrs: attrs,
	}
	c.tally.happened(&e)
	e.RestartCount = c.restarts() // with this one, if it is one
	c.sink.Emit(e)
}

// all yields every process that is not settled: the serving one first.
func (c *core) all(yield func(*process) bool) {
	if !yield(c.process) {
		return
	}
	for i := 0; i < len(c.beside); i++ {
		if !yield(c.beside[i]) {
			return
		}
	}
}

// byGen returns the process of a generation, nil for one that is settled.
func (c *core) byGen(gen int) *process {
	for p := range c.all {
		if p.gen == gen {
			return p
		}
	}
	return nil
}

// leave takes p out of the processes beside the serving one. The list is a new one: others are walking through the old one.
func (c *core) leave(p *process) {
	c.beside = slices.DeleteFunc(slices.Clone(c.beside), func(one *process) bool { return one == p })
}

// hasTools reports whether p may be asked for tools: it declares them, or one of its kind has shown some all the same.
func (c *core) hasTools(p *process) bool {
	return c.undeclared || jsonrpc.FindPath(p.offer, "capabilities", "tools").Present()
}

// hopeless reports whether waiting is useless: the breaker is open.
func (c *core) hopeless() bool { return c.machine.State() == supervise.Failed }

// Asleep reports whether no process runs because none is needed. The next one will be new.
func (c *core) Asleep() bool { return c.machine.State() == supervise.Stopped && !c.over }

// Unspoken reports whether no client has begun a conversation yet: a process is ready once it runs then.
func (c *core) Unspoken() bool { return c.session.Era == mcp.EraUnknown && c.session.InitParams == nil }

// privateMeta is the _meta of outlive's own requests: the client's in the modern era, none in the legacy one.
func (c *core) privateMeta() []byte {
	if c.session.Era != mcp.Modern {
		return nil
	}
	return bytes.Clone(c.session.Meta)
}

// settled stores what the handshake negotiated, given its raw result.
func (c *core) settled(result []byte) {
	version, _ := jsonrpc.Unquote(jsonrpc.Find(result, "protocolVersion").Of(result))
	c.session.InitResult, c.session.Version = result, version
}

// installing reports whether p is a launcher that installs its server, for as long as that is waited for.
func (c *core) installing(p *process) bool {
	return p.up() && !p.through() && c.now.Sub(p.started) < launcher.InstallTime && p.server.Installing()
}

// sayInitialized sends notifications/initialized to a process, if the client has sent it before.
func (c *core) sayInitialized(p *process) {
	if c.session.Initialized && !p.said(mcp.NoteInitialized) {
		p.say(mcp.InitializedLine())
	}
}

// tell sends the client a message of outlive's own that answers nothing.
func (c *core) tell(line []byte) {
	c.showing.passed(line, tap.Outlive, tap.Client, c.process.gen, "")
	c.client.SendToClient(line)
}

// blocked reports a client line that is not forwarded.
func (c *core) blocked(line, id []byte, why string) {
	c.showing.blocked(line)
	c.emit(event.ValidationBlocked, slog.LevelError, "Message blocked: "+why,
		slog.String(event.KeyReason, why), slog.String(event.KeyRequestID, string(id)),
		slog.String(event.KeyRawLine, excerpt(line)))
}

// withResult replaces the result in line and scans its envelope again.
func (c *core) withResult(line, result []byte) []byte {
	line = jsonrpc.Replace(nil, line, c.env.Result, result)
	_ = c.env.Scan(line) // our own splice of two valid texts
	return line
}

// login says how somebody can log in at a server elsewhere who is being asked to just now; "": nobody is.
func (c *core) login() string {
	if !c.opts.Remote || !c.process.up() {
		return ""
	}
	return c.process.server.Vitals().Login
}
