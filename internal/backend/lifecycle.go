package backend

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

const (
	// drainFor is how long the output of a process that has exited is still read: a descendant may hold the pipe.
	drainFor = 500 * time.Millisecond
	// closedFor is how long a process that closed its stdout may take to exit.
	closedFor = time.Second
)

// Exit is how a process ended.
type Exit struct {
	Code      int    // 128+N for signal N
	Signal    string // "" or its name
	Signalled bool
	MaxRSS    int64 // bytes
	CPU       time.Duration
	// Unread is how many of the bytes given to the process's stdin it never took, what is still in our own queue
	// included.
	Unread int
}

// Open starts the first process.
func (b *Backend) Open(now time.Time) {
	b.now = now
	b.step(supervise.Start{})
}

// Generation is the number of the last process.
func (b *Backend) Generation() int { return b.process.gen }

// Unspoken reports whether no client has begun to speak to a server yet: then a process is ready once it runs.
func (b *Backend) Unspoken() bool { return b.session.InitParams == nil && b.session.Era != mcp.Modern }

// Restart asks for a planned restart; source and reason say who wants it and why.
func (b *Backend) Restart(now time.Time, source supervise.Source, reason string) {
	b.now = now
	b.step(supervise.Restart{Cause: supervise.Requested, Source: source, Reason: reason})
}

// Interrupted ends everything at once: outlive itself was told to stop.
func (b *Backend) Interrupted(now time.Time) {
	b.now = now
	b.closing = true
	b.step(supervise.Stop{Profile: supervise.Signal})
}

// MarkerSeen tells that process gen printed the restart marker on its stderr (S3).
func (b *Backend) MarkerSeen(now time.Time, gen int) {
	b.now = now
	if gen != b.process.gen || !b.process.up {
		return
	}
	b.emit(event.RestartMarkerDetected, slog.LevelInfo, "Restart marker detected on the server's stderr")
	b.Restart(now, supervise.SourceMarker, "restart marker")
}

// step gives the machine an event and carries out what it decides. Deciding may cause further events; they wait their
// turn.
func (b *Backend) step(ev supervise.Event) {
	b.events = append(b.events, ev)
	if b.stepping {
		return
	}
	b.stepping = true
	for len(b.events) > 0 {
		next := b.events[0]
		b.events = b.events[1:]
		b.carryOut(b.machine.Step(b.now, b.world.Rand(), next))
	}
	b.stepping = false
}

// act carries out what the machine decided by itself when a timer ran out.
func (b *Backend) act(actions []supervise.Action) {
	b.stepping = true
	b.carryOut(actions)
	b.stepping = false
	if len(b.events) > 0 {
		ev := b.events[0]
		b.events = b.events[1:]
		b.step(ev)
	}
}

func (b *Backend) carryOut(actions []supervise.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case supervise.Spawn:
			b.spawn(a)
		case supervise.BeginDrain:
			b.process.draining = true
			b.checkDrained()
		case supervise.CloseStdin:
			b.closeInput()
		case supervise.Terminate:
			b.world.Terminate()
		case supervise.Kill:
			b.world.Kill()
		case supervise.Report:
			b.report(a)
		case supervise.Finish:
			b.finishAll(a.Code)
		}
	}
}

// spawn starts the next process and greets it.
func (b *Backend) spawn(a supervise.Spawn) {
	b.process = process{gen: a.Gen, started: b.now}
	b.probe = probe{}
	clear(b.private)
	b.emit(event.ServerStarting, slog.LevelInfo, fmt.Sprintf("Starting server (restart #%d)", b.machine.Restarts()))
	pid, err := b.world.Start(a.Gen, a.Reason)
	if err != nil {
		b.lastOut = lastExit{code: -1, at: b.now, why: "could not be started: " + err.Error()}
		b.emit(event.SpawnFailed, slog.LevelError, "Server could not be started: "+err.Error(),
			slog.String(event.KeyError, err.Error()))
		b.step(supervise.SpawnFailed{Gen: a.Gen, Err: err})
		b.firstTryFailed()
		return
	}
	b.process.pid, b.process.up = pid, true
	b.emit(event.ServerSpawned, slog.LevelInfo, fmt.Sprintf("Server spawned (PID: %d)", pid))
	b.greet()
}

// closeInput closes the server's stdin: before a restart at once, since what waits is for the next process; when the
// client has left, after what still waits for this one.
func (b *Backend) closeInput() {
	if !b.closing {
		b.shutInput()
		return
	}
	b.closeWanted = true
	b.closeInputWhenFlushed()
}

func (b *Backend) closeInputWhenFlushed() {
	if b.closeWanted && b.process.accepting && b.calls.waiting == 0 {
		b.closeWanted = false
		b.shutInput()
	}
}

// shutInput closes the server's stdin. What the client says from now on is not for this process.
func (b *Backend) shutInput() {
	b.process.draining, b.process.shut = true, true
	b.world.CloseInput()
}

// checkDrained tells the machine when nothing is in flight any more at a process that is to be ended.
func (b *Backend) checkDrained() {
	if b.process.draining && b.calls.inFlight-b.listening() <= 0 {
		b.step(supervise.Drained{Gen: b.process.gen})
	}
}

// listening is how many requests in flight are streams that never end by themselves.
func (b *Backend) listening() int {
	if b.session.Era != mcp.Modern {
		return 0
	}
	n := 0
	for c := range b.calls.all {
		if c.state == sent && c.method == mcp.Listen {
			n++
		}
	}
	return n
}

// ServerExited tells that process gen is gone. Its output may still be coming.
func (b *Backend) ServerExited(now time.Time, gen int, exit Exit) {
	b.now = now
	if gen != b.process.gen || b.process.exited {
		return
	}
	p := &b.process
	p.undelivered = uint64(exit.Unread)
	b.lastOut = lastExit{
		code: exit.Code, signal: exit.Signal, at: now, why: b.whyExited(exit), stderr: b.world.LastStderr(stderrShown),
	}
	attrs := []slog.Attr{
		slog.Int(event.KeyExitCode, exit.Code), slog.Int64(event.KeyUptimeMS, now.Sub(p.started).Milliseconds()),
		slog.Int64(event.KeyMaxRSS, exit.MaxRSS), slog.Int64(event.KeyCPUMS, exit.CPU.Milliseconds()),
	}
	if exit.Signal != "" {
		attrs = append(attrs, slog.String(event.KeySignal, exit.Signal))
	}
	b.emit(event.ServerExited, slog.LevelInfo, fmt.Sprintf("Server exited (code: %d)", exit.Code), attrs...)
	p.up, p.exited, p.accepting = false, true, false
	probed := b.probe.active
	if probed {
		b.probeFailed("exits")
	}
	b.step(supervise.Exited{Gen: gen, Code: exit.Code, Signalled: exit.Signalled, Probe: probed})
	if b.begun.IsZero() {
		b.begun = now
	}
	if p.closed {
		b.outputEnded()
	} else {
		b.arm(timerDrain, drainFor)
	}
}

func (b *Backend) whyExited(exit Exit) string {
	snap := b.machine.Snapshot()
	switch {
	case snap.Cause == supervise.Requested || snap.Cause == supervise.Replace:
		return "was stopped for a restart"
	case exit.Signalled:
		return fmt.Sprintf("crashed (exit %d, %s)", exit.Code, exit.Signal)
	default:
		return fmt.Sprintf("exited (exit %d)", exit.Code)
	}
}

// ServerClosed tells that process gen's stdout has ended.
func (b *Backend) ServerClosed(now time.Time, gen int) {
	b.now = now
	if gen != b.process.gen || b.process.closed {
		return
	}
	b.process.closed = true
	if b.process.exited {
		b.outputEnded()
	} else {
		b.arm(timerClosed, closedFor)
	}
}

// outputEnded settles everything the dead process leaves behind and lets the machine decide what follows.
func (b *Backend) outputEnded() {
	b.disarm(timerDrain)
	b.disarm(timerClosed)
	b.noise.flush(b)
	b.forgetCut()
	clear(b.private)
	b.settleCalls()
	b.asks.cancelAll(b, "server restarted")
	b.recoverCalls(b.machine.Snapshot().Planned)
	b.firstTryFailed()
	b.step(supervise.Gone{Gen: b.process.gen})
	if b.stopped {
		return
	}
	b.answerVerify(false)
	if b.hopeless() {
		b.giveUpFirst()
		b.refuseWaiting()
	}
}

// refuseWaiting answers the whole queue: the breaker is open.
func (b *Backend) refuseWaiting() {
	for c := range b.calls.all {
		if c.state == waiting && c.method != mcp.Initialize {
			b.refuse(c, b.unavailable())
		}
	}
}

// finishAll ends the connection. Whoever still waits is told.
func (b *Backend) finishAll(code int) {
	if b.stopped {
		return
	}
	b.stopped = true
	for c := range b.calls.all {
		if !c.isRequest() {
			b.calls.remove(c)
		} else if c.state == sent {
			b.lost(c, reasonRestarted)
		} else {
			b.refuse(c, refusal{reason: reasonUnavailable, text: "the server has shut down; the request was not delivered"})
		}
	}
	b.timers = [timerCount]time.Time{}
	b.world.Finish(code)
}
