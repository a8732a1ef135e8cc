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

	wakeAt time.Time // as the world was told last
	depth  int       // of calls within calls: that a client is gone is told while it is written to
}

// New returns a backend that acts on w and emits events to sink. [Backend.Open] starts its first process.
func New(opts Options, w World, sink event.Sink) *Backend {
	opts = opts.withDefaults()
	a := &arrays{Client: w}
	c := &core{
		opts: opts, world: w, client: a, arrays: a, sink: sink,
		machine: supervise.New(opts.Supervise), process: &process{},
		questions: questions{open: map[string]*question{}},
		memory:    memory{known: opts.Known, keep: w},
	}
	for _, part := range []**core{
		&c.asks.core, &c.history.core, &c.showing.core, &c.flow.core, &c.handshake.core, &c.replay.core, &c.eras.core, &c.prober.core,
		&c.lists.core, &c.tools.core, &c.streams.core, &c.states.core, &c.tasks.core, &c.noiseLog.core, &c.mender.core, &c.health.core,
		&c.long.core, &c.limits.core, &c.spares.core, &c.life.core,
	} {
		*part = c
	}
	c.showing.connection = opts.Tap.Connect()
	c.backend = &Backend{core: c}
	c.calls.init()
	c.tools.init()
	c.eras.standBetween()
	return c.backend
}

// at begins a call, in which it is now. Every method with a time argument begins with it, and ends with end.
func (b *Backend) at(now time.Time) *Backend {
	b.now = now
	b.depth++
	return b
}

// end hands on what a bridge has said meanwhile, and calls WakeAt if the deadline has changed. A call within another one leaves
// that to it, whose line is still being read.
func (b *Backend) end() {
	if b.depth == 1 {
		b.eras.settle()
		if at := b.deadline(); at != b.wakeAt {
			b.wakeAt = at
			b.world.WakeAt(at)
		}
	}
	b.depth--
}

// deadline is when Tick must be called; zero: not needed.
func (b *Backend) deadline() time.Time {
	at := deadline.Earliest(b.machine.Deadline(), b.health.healthDeadline(), b.eras.deadline(), deadline.Earliest(b.timers[:]...))
	for p := range b.all {
		at = deadline.Earliest(at, p.deadline())
	}
	return at
}

// Tick handles everything that is due.
func (b *Backend) Tick(now time.Time) {
	defer b.at(now).end()
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
	b.eras.tick()
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
	defer b.at(now).end()
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

// Translates reports whether a bridge stands between client and server. It is known once the client's handshake is answered.
func (b *Backend) Translates() bool { return b.eras.bridge != nil }

// Restart requests a planned restart; source and reason are recorded.
func (b *Backend) Restart(now time.Time, source supervise.Source, reason string) {
	defer b.at(now).end()
	b.life.restart(source, reason)
}

// Interrupted ends everything at once: outlive itself was told to stop.
func (b *Backend) Interrupted(now time.Time) {
	defer b.at(now).end()
	b.closing, b.signalled = true, true
	b.life.step(supervise.Stop{Profile: supervise.Signal})
	if b.over && !b.stopped {
		b.spares.hurry() // they had the time that is theirs when a client leaves
	}
}

// MarkerSeen reports that process gen printed the restart marker on its stderr (TP-1).
func (b *Backend) MarkerSeen(now time.Time, gen int) {
	defer b.at(now).end()
	if gen != b.process.gen || !b.process.up() {
		return
	}
	b.emit(event.RestartMarkerDetected, slog.LevelInfo, "Restart marker detected on the server's stderr")
	b.Restart(now, supervise.SourceMarker, "restart marker")
}

// ServerSpawned reports that process gen, which was NotSpawned, runs now.
func (b *Backend) ServerSpawned(now time.Time, gen, pid int) {
	defer b.at(now).end()
	if p := b.byGen(gen); p != nil {
		b.life.spawned(p, pid)
	}
}

// ServerExited reports that process gen has exited. Its output may still be coming.
func (b *Backend) ServerExited(now time.Time, gen int, exit Exit) {
	defer b.at(now).end()
	switch p := b.byGen(gen); {
	case p == nil:
		b.life.endsAfterAll(gen, exit)
		return
	case p.gone():
		b.life.endsAfterAll(gen, exit)
	default:
		b.life.exited(p, exit)
	}
}

// ServerClosed reports that process gen's stdout has ended.
func (b *Backend) ServerClosed(now time.Time, gen int) {
	defer b.at(now).end()
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
}

// Serving returns the process that gets the client's messages; nil before one could be started.
func (b *Backend) Serving() Server { return b.process.server }

// Drained reports that process gen's pipe has accepted everything queued for it.
func (b *Backend) Drained(now time.Time, gen int) {
	defer b.at(now).end()
	if gen == b.process.gen {
		b.flow.flushQueue()
	}
}

// MayRepeat decides whether a request that the remote server may have processed is sent again, by the rules that apply
// after a process has died. why describes the failure.
func (b *Backend) MayRepeat(now time.Time, gen int, id []byte, m mcp.Method, why string) bool {
	defer b.at(now).end()
	return b.flow.mayRepeat(gen, id, m, why)
}
