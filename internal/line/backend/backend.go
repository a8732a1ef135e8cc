package backend

import (
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/deadline"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// Backend keeps one server alive behind one client. It passes each event to the part that handles it.
type Backend struct {
	*core

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

	runner Runner
	wakeAt time.Time // as the runner was told last
}

// New returns a backend that acts on w and emits events to sink. [Backend.Open] starts its first process.
func New(opts Options, w World, sink event.Sink) *Backend {
	opts = opts.withDefaults()
	a := &arrays{Client: w}
	c := &core{
		opts: opts, client: a, arrays: a, sink: sink,
		machine: supervise.New(opts.Supervise), process: &process{},
		questions: questions{open: map[string]*question{}},
		memory:    memory{known: opts.Known, keep: w},
	}
	c.calls.init()
	c.asks.init()
	c.asks.core, c.history.core = c, c
	c.showing = showing{core: c, connection: opts.Tap.Connect()}
	b := &Backend{core: c, runner: w}
	b.join(w)
	b.tools.init()
	b.eras.beginAdapter()
	return b
}

// join connects the parts with each other and with the world.
func (b *Backend) join(w World) {
	c := b.core
	b.flow = flow{
		core: c, life: &b.life, handshake: &b.handshake, replay: &b.replay, streams: &b.streams, prober: &b.prober, health: &b.health,
		limits: &b.limits, eras: &b.eras,
	}
	b.handshake = handshake{core: c, flow: &b.flow, life: &b.life, replay: &b.replay, spares: &b.spares, prober: &b.prober, eras: &b.eras}
	b.replay = replay{
		core: c, life: &b.life, flow: &b.flow, handshake: &b.handshake, eras: &b.eras, spares: &b.spares,
		streams: &b.streams, lists: &b.lists, tools: &b.tools, health: &b.health, limits: &b.limits,
	}
	b.eras = eras{core: c, backend: b, flow: &b.flow, life: &b.life, handshake: &b.handshake, replay: &b.replay, spares: &b.spares, states: &b.states,
		streams: &b.streams}
	b.prober = prober{core: c, flow: &b.flow, life: &b.life, replay: &b.replay, eras: &b.eras}
	b.lists = lists{core: c, flow: &b.flow, streams: &b.streams, tools: &b.tools}
	b.tools = restartTools{core: c, markers: w, flow: &b.flow, life: &b.life, lists: &b.lists, backend: b}
	b.streams = streams{core: c, flow: &b.flow, life: &b.life, lists: &b.lists, eras: &b.eras}
	b.states = requestStates{core: c, flow: &b.flow}
	b.tasks = tasks{core: c, flow: &b.flow}
	b.noiseLog = noiseLog{core: c, stderr: w, mender: &b.mender, backend: b}
	b.mender = mender{core: c, tasks: &b.tasks, noiseLog: &b.noiseLog, backend: b}
	b.health = healthWatch{core: c, flow: &b.flow, life: &b.life}
	b.long = longCalls{core: c, health: &b.health}
	b.limits = limits{core: c, life: &b.life, health: &b.health, eras: &b.eras}
	b.spares = spares{core: c, life: &b.life, replay: &b.replay, lists: &b.lists, flow: &b.flow, streams: &b.streams, tools: &b.tools,
		limits: &b.limits, health: &b.health}
	b.life = lifecycle{
		core: c, runner: w, flow: &b.flow, replay: &b.replay, handshake: &b.handshake, spares: &b.spares,
		prober: &b.prober, eras: &b.eras, streams: &b.streams, tools: &b.tools, noiseLog: &b.noiseLog, health: &b.health,
	}
}

// at begins a call, in which it is now. Every method with a time argument begins with it, and ends with tellWake.
func (b *Backend) at(now time.Time) *Backend {
	b.now = now
	return b
}

// tellWake calls WakeAt if the deadline has changed.
func (b *Backend) tellWake() {
	if at := b.deadline(); at != b.wakeAt {
		b.wakeAt = at
		b.runner.WakeAt(at)
	}
}

// deadline is when Tick must be called; zero: not needed.
func (b *Backend) deadline() time.Time {
	at := deadline.Earliest(b.machine.Deadline(), b.health.healthDeadline(), deadline.Earliest(b.timers[:]...))
	for p := range b.all {
		at = deadline.Earliest(at, p.deadline())
	}
	if b.eras.adapter != nil {
		at = deadline.Earliest(at, b.eras.adapter.deadline())
	}
	return at
}

// Tick handles everything that is due.
func (b *Backend) Tick(now time.Time) {
	defer b.at(now).tellWake()
	for t := range timerCount {
		if at := b.timers[t]; !at.IsZero() && !now.Before(at) {
			b.timers[t] = time.Time{}
			b.expire(t)
		}
	}
	for _, p := range append([]*process{b.process}, b.beside...) {
		b.life.processTick(p)
	}
	b.health.healthTick()
	b.life.tick()
	if b.eras.adapter != nil {
		b.eras.adapter.tick()
		b.eras.settle()
	}
}

func (b *Backend) expire(t timer) {
	switch t {
	case timerQueue:
		b.flow.expireQueue()
	case timerProbe:
		b.prober.probeTick()
	case timerVerify:
		b.tools.answerVerify(true)
	case timerSettle:
		b.tools.settleCalls()
	case timerNoise:
		b.noiseLog.flushNoise()
	case timerCut:
		b.streams.releaseCut()
	case timerDoubt:
		b.lists.settleDoubts()
	case timerLearn:
		b.lists.learnTools()
	case timerIdle:
		b.limits.checkIdle()
	case timerLater:
		b.spares.spawnLater()
	case timerLimits:
		b.limits.checkLimits()
	case timerFirst:
		b.handshake.giveUpFirst()
	case timerLong:
		b.long.look()
	}
}

// Open starts the first process, unless it starts on demand.
func (b *Backend) Open(now time.Time) {
	defer b.at(now).tellWake()
	if !b.memory.lazy(b.opts) {
		b.life.step(supervise.Start{})
	}
}

// Generation is the number of the last process.
func (b *Backend) Generation() int { return b.process.gen }

// Newest is the highest generation so far, serving or not.
func (b *Backend) Newest() int { return b.machine.Newest() }

// Restarting reports whether the server does not serve now, or a replacement is coming up.
func (b *Backend) Restarting() bool { return b.life.restarting() }

// Unspoken reports whether no client has begun a conversation yet: a process is ready once it runs then.
func (b *Backend) Unspoken() bool { return b.unspoken() }

// Restart requests a planned restart; source and reason are recorded.
func (b *Backend) Restart(now time.Time, source supervise.Source, reason string) {
	defer b.at(now).tellWake()
	b.life.restart(source, reason)
	b.eras.settle() // the next process may need a bridge
}

// Interrupted ends everything at once: outlive itself was told to stop.
func (b *Backend) Interrupted(now time.Time) {
	defer b.at(now).tellWake()
	b.closing, b.signalled = true, true
	b.life.step(supervise.Stop{Profile: supervise.Signal})
	if b.over && !b.stopped {
		b.spares.hurry() // they had the time that is theirs when a client leaves
	}
}

// MarkerSeen reports that process gen printed the restart marker on its stderr (TP-1).
func (b *Backend) MarkerSeen(now time.Time, gen int) {
	defer b.at(now).tellWake()
	if gen != b.process.gen || !b.process.up() {
		return
	}
	b.emit(event.RestartMarkerDetected, slog.LevelInfo, "Restart marker detected on the server's stderr")
	b.Restart(now, supervise.SourceMarker, "restart marker")
}

// ServerSpawned reports that process gen, which was NotSpawned, runs now.
func (b *Backend) ServerSpawned(now time.Time, gen, pid int) {
	defer b.at(now).tellWake()
	if p := b.byGen(gen); p != nil {
		b.life.spawned(p, pid)
	}
}

// ServerExited reports that process gen has exited. Its output may still be coming.
func (b *Backend) ServerExited(now time.Time, gen int, exit Exit) {
	defer b.at(now).tellWake()
	switch p := b.byGen(gen); {
	case p == nil:
		b.life.endsAfterAll(gen, exit)
		return
	case p.gone():
		b.life.endsAfterAll(gen, exit)
	default:
		b.life.exited(p, exit)
	}
	b.eras.settle()
}

// ServerClosed reports that process gen's stdout has ended.
func (b *Backend) ServerClosed(now time.Time, gen int) {
	defer b.at(now).tellWake()
	p := b.byGen(gen)
	if p == nil || p.closed {
		return
	}
	p.closed = true
	if p.gone() {
		b.life.outputEnded(p)
	} else {
		p.closedBy = now.Add(closedFor)
	}
	b.eras.settle()
}

// Serving returns the process that gets the client's messages; nil before one could be started.
func (b *Backend) Serving() Server { return b.process.server }

// Asleep reports whether no process runs because none is needed. The next one will be new.
func (b *Backend) Asleep() bool { return b.asleep() }

// Drained reports that process gen's pipe has accepted everything queued for it.
func (b *Backend) Drained(now time.Time, gen int) {
	defer b.at(now).tellWake()
	if gen == b.process.gen {
		b.flow.flushQueue()
	}
}

// MayRepeat decides whether a request that the remote server may have processed is sent again, by the rules that apply
// after a process has died. why describes the failure.
func (b *Backend) MayRepeat(now time.Time, gen int, id []byte, m mcp.Method, why string) bool {
	defer b.at(now).tellWake()
	return b.flow.mayRepeat(gen, id, m, why)
}
