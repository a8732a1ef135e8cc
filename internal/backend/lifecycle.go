package backend

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/child"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/secret"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

const (
	// drainFor is how long the output of a process that has exited is still read: a descendant may hold the pipe.
	drainFor = 500 * time.Millisecond
	// lastGrace is the time between Terminate and Kill for retired processes when everything ends.
	lastGrace = 300 * time.Millisecond
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
	Unstarted error // there never was a process, because of this
	// Connection: it was no process but a connection to a server elsewhere, which ended because of Why; "": it was closed.
	Connection bool
	Why        string
	// Unread is how many of the bytes given to the process's stdin it never took, what is still in our own queue
	// included.
	Unread int
}

// Open starts the first process, if it is not to wait for something to do.
func (b *Backend) Open(now time.Time) {
	b.now = now
	if !b.lazy() {
		b.step(supervise.Start{})
	}
}

// Generation is the number of the last process.
func (b *Backend) Generation() int { return b.process.gen }

// Newest is the number of the last process that was started, serving or not. What is started from now on has a higher one.
func (b *Backend) Newest() int { return b.machine.Newest() }

// Restarting reports whether the server does not serve now, or another process is to take over from it.
func (b *Backend) Restarting() bool {
	return b.machine.Reloading() || b.machine.State() != supervise.Serving
}

// Unspoken reports whether no client has begun to speak to a server yet: then a process is ready once it runs.
func (b *Backend) Unspoken() bool { return b.session.Era == mcp.Virgin && b.session.InitParams == nil }

// Restart asks for a planned restart; source and reason say who wants it and why.
func (b *Backend) Restart(now time.Time, source supervise.Source, reason string) {
	b.now = now
	b.step(supervise.Restart{Cause: supervise.Requested, Source: source, Reason: reason, Overlap: b.mayOverlap()})
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
			b.process.server.Terminate()
		case supervise.Kill:
			b.process.server.Kill()
		case supervise.SpawnSpare:
			b.wantSpare(a)
		case supervise.Throttled:
			a.Tell(b.emit)
		case supervise.TakeOver:
			b.takeOver(a)
		case supervise.Dismiss:
			b.dismiss(a.Gen)
		case supervise.ReloadFailed:
			b.reloadFailed(a)
		case supervise.Report:
			b.report(a)
		case supervise.Finish:
			b.finishAll(a.Code)
		}
	}
}

// spawn starts the next serving process and greets it.
func (b *Backend) spawn(a supervise.Spawn) {
	b.newProcessForProbe()
	p, err := b.start(Launch{Gen: a.Gen, Why: a.Reason, Anew: anew(a.Cause, a.Source)}, serving)
	if err != nil {
		status, _ := child.ShellStatus(err)
		b.lastOut = lastExit{kind: neverStarted, code: -1, shell: status, at: b.now, why: "could not be started: " + err.Error()}
		if !b.Unspoken() {
			status = 0 // a client waits, and is told
		}
		b.step(supervise.SpawnFailed{Gen: a.Gen, Err: err, Status: status})
		b.firstTryFailed()
		return
	}
	b.greet(p)
}

// anew reports whether a start is to bring new code.
func anew(c supervise.Cause, s supervise.Source) bool {
	return c == supervise.Requested && s != supervise.SourceLimit
}

// start starts a process.
func (b *Backend) start(l Launch, r role) (*process, error) {
	p := &process{gen: l.Gen, role: r, started: b.now}
	p.follow(b.process)
	if r == serving {
		b.process = p
	}
	text := "Starting server"
	if b.opts.Remote {
		text = "Opening a connection"
	}
	b.emitOf(p, event.ServerStarting, slog.LevelInfo, fmt.Sprintf("%s (restart #%d)", text, b.machine.Restarts()))
	server, err := b.world.Start(l)
	if err != nil {
		b.tellUnstarted(p, err)
		return nil, fmt.Errorf("start server: %w", err)
	}
	p.server, p.up = server, true
	if r != serving {
		b.beside = append(b.beside, p)
	}
	if pid := server.PID(); pid != Unborn {
		b.spawned(p, pid)
	}
	return p, nil
}

func (b *Backend) tellUnstarted(p *process, err error) {
	b.emitOf(p, event.SpawnFailed, slog.LevelError, "Server could not be started: "+err.Error(), slog.String(event.KeyError, err.Error()))
}

// ServerSpawned tells that process gen, which was Unborn, exists.
func (b *Backend) ServerSpawned(now time.Time, gen, pid int) {
	b.now = now
	if p := b.byGen(gen); p != nil {
		b.spawned(p, pid)
	}
}

func (b *Backend) spawned(p *process, pid int) {
	p.pid = pid
	text := fmt.Sprintf("Server spawned (PID: %d)", pid)
	if pid == 0 {
		text = "Connecting to " + secret.Line(b.opts.Command) // it runs elsewhere
	}
	b.emitOf(p, event.ServerSpawned, slog.LevelInfo, text)
}

// closeInput closes the server's stdin: before a restart at once, since what waits is for the next process; when the
// client has left, after what still waits for this one.
func (b *Backend) closeInput() {
	if !b.closing {
		b.process.shutInput()
		return
	}
	b.closeWanted = true
	b.closeInputWhenFlushed()
}

func (b *Backend) closeInputWhenFlushed() {
	ready := b.process.accepting || b.process.up && b.failedInit != nil // what is asked for nobody is not waited for
	if b.closeWanted && ready && b.calls.waiting == 0 && !b.unsaid() {
		b.closeWanted = false
		b.process.shutInput()
	}
}

// shutInput closes the server's stdin. What the client says from now on is not for this process.
func (p *process) shutInput() {
	p.draining, p.shut = true, true
	p.server.CloseInput()
}

// checkDrained tells when nothing is in flight any more at a process that is to be ended.
func (b *Backend) checkDrained() {
	if p := b.process; p.draining && p.up && !b.busy(p) {
		b.step(supervise.Drained{Gen: p.gen})
	}
	for i := 0; i < len(b.beside); i++ {
		if p := b.beside[i]; p.role == retired && p.up && !b.busy(p) {
			b.carryOutFor(p, p.retirement.Drained(b.now))
		}
	}
}

// ServerExited tells that process gen is gone. Its output may still be coming.
func (b *Backend) ServerExited(now time.Time, gen int, exit Exit) {
	b.now = now
	switch p := b.byGen(gen); {
	case p == nil:
		return
	case !p.exited:
		b.exited(p, exit)
	}
	b.settle()
}

// exited deals with the exit of a process.
func (b *Backend) exited(p *process, exit Exit) {
	now := b.now
	if exit.Unstarted != nil {
		exit.Unread = int(p.sent)
	}
	shell, _ := child.ShellStatus(exit.Unstarted)
	p.undelivered = uint64(exit.Unread)
	p.ending = lastExit{code: exit.Code, shell: shell, signal: exit.Signal, at: now, why: b.whyExited(p, exit), ended: b.whyEnded(p)}
	if exit.Unstarted != nil {
		p.ending.kind = neverStarted
	}
	if exit.Connection {
		p.ending.code, p.ending.kind, p.ending.ended = -1, connectionEnded, ""
	} else {
		p.ending.stderr = p.server.LastStderr(stderrShown)
	}
	if exit.Unstarted != nil {
		b.tellUnstarted(p, exit.Unstarted)
	} else {
		b.tellExit(p, exit)
	}
	p.up, p.exited, p.accepting, p.trial = false, true, false, trial{}
	switch p.role {
	case serving:
		b.servingExited(p, exit)
	case spare:
		p.role = retired // there is nothing left to end
		b.step(supervise.SpareFailed{Gen: p.gen, Reason: "it " + p.ending.why})
	}
	if p.closed {
		b.outputEnded(p)
	} else {
		p.drainBy = now.Add(drainFor)
	}
}

func (b *Backend) tellExit(p *process, exit Exit) {
	if exit.Connection {
		b.emitOf(p, event.ServerExited, slog.LevelInfo, "Connection ended: "+p.ending.why,
			slog.String(event.KeyReason, p.ending.why), slog.Int64(event.KeyUptimeMS, b.now.Sub(p.started).Milliseconds()))
		return
	}
	attrs := []slog.Attr{
		slog.Int(event.KeyExitCode, exit.Code), slog.Int64(event.KeyUptimeMS, b.now.Sub(p.started).Milliseconds()),
		slog.Int64(event.KeyMaxRSS, exit.MaxRSS), slog.Int64(event.KeyCPUMS, exit.CPU.Milliseconds()),
	}
	if exit.Signal != "" {
		attrs = append(attrs, slog.String(event.KeySignal, exit.Signal))
	}
	b.emitOf(p, event.ServerExited, slog.LevelInfo, fmt.Sprintf("Server exited (code: %d)", exit.Code), attrs...)
}

func (b *Backend) servingExited(p *process, exit Exit) {
	b.lastOut = p.ending
	end := b.endOf(p, exit)
	if end.Probe {
		b.probeFailed("exits")
	}
	b.step(end)
	if b.begun.IsZero() && b.machine.Snapshot().Cause != supervise.Idle {
		b.begun = b.now
	}
}

// endOf is the exit of the serving process p as the machine is told of it. One that ended before it had read the probe did
// not end because of it; the next one gets it.
func (b *Backend) endOf(p *process, exit Exit) supervise.Exited {
	probed := b.probe.active && b.probe.seen && exit.Unread == 0
	return supervise.Exited{Gen: p.gen, Code: exit.Code, Signalled: exit.Signalled, Probe: probed, Reason: exit.Why}
}

func (b *Backend) whyExited(p *process, exit Exit) string {
	snap := b.machine.Snapshot()
	switch {
	case exit.Unstarted != nil:
		return "could not be started: " + exit.Unstarted.Error()
	case p.refusal != "" && exit.Connection:
		return p.refusal
	case p.role == retired:
		return "was stopped for a restart"
	case p.role == serving && snap.Cause == supervise.Idle:
		return "was not needed any more"
	case p.role == serving && snap.Cause == supervise.Unhealthy:
		return "stopped working and was ended"
	case p.role == serving && snap.Cause == supervise.StartFail:
		return "did not start (" + snap.Reason + ") and was ended"
	case p.role == serving && snap.Cause == supervise.Shutdown:
		return "was stopped, because " + snap.Reason + ","
	case p.role == spare:
		return fmt.Sprintf("exited before it was ready (exit %d)", exit.Code)
	case snap.Cause == supervise.Requested || snap.Cause == supervise.Replace:
		return "was stopped for a restart"
	case exit.Connection:
		return cmp.Or(exit.Why, "closed")
	case exit.Signalled:
		return fmt.Sprintf("crashed (exit %d, %s)", exit.Code, exit.Signal)
	default:
		return fmt.Sprintf("exited (exit %d)", exit.Code)
	}
}

// whyEnded is why outlive has ended p, if that had failed; "" if it ended by itself, or for a restart.
func (b *Backend) whyEnded(p *process) string {
	snap := b.machine.Snapshot()
	if p.role == serving && (snap.Cause == supervise.StartFail || snap.Cause == supervise.Unhealthy || snap.Cause == supervise.Memory) {
		return snap.Reason
	}
	return ""
}

// ServerClosed tells that process gen's stdout has ended.
func (b *Backend) ServerClosed(now time.Time, gen int) {
	b.now = now
	p := b.byGen(gen)
	if p == nil || p.closed {
		return
	}
	p.closed = true
	if p.exited {
		b.outputEnded(p)
	} else {
		p.closedBy = now.Add(closedFor)
	}
	b.settle()
}

// outputEnded settles everything the dead process leaves behind and lets the machine decide what follows.
func (b *Backend) outputEnded(p *process) {
	p.drainBy, p.closedBy, p.wishesBy = time.Time{}, time.Time{}, time.Time{}
	p.noise.flush(b, p)
	b.forgetQuestions(p)
	b.asks.cancelAll(b, p, "server restarted")
	if p.role != serving {
		b.besideEnded(p)
		return
	}
	if b.seam != nil && len(b.beside) == 0 {
		b.seam.reborn()
	}
	b.forgetCut()
	b.settleCalls()
	b.recoverCalls(p, b.machine.Snapshot().Planned)
	b.firstTryFailed()
	b.step(supervise.Gone{Gen: p.gen})
	if b.stopped || b.over {
		return
	}
	b.answerVerify(false)
	if b.hopeless() {
		b.giveUpFirst()
		b.refuseWaiting()
	}
}

// besideEnded settles a process that did not serve. What a retired one had in flight goes to the one that serves now.
func (b *Backend) besideEnded(p *process) {
	b.recoverCalls(p, true)
	b.leave(p)
	b.flushQueue()
	b.finishWhenAlone()
}

// refuseWaiting answers the whole queue: the breaker is open.
func (b *Backend) refuseWaiting() {
	for c := range b.calls.all {
		if c.state == waiting && c.method != mcp.Initialize || b.unopened(c) {
			b.refuse(c, b.unavailable(c))
		}
	}
}

// finishAll ends the connection. Whoever still waits is told.
func (b *Backend) finishAll(code int) {
	if b.stopped || b.over {
		return
	}
	b.over, b.code = true, code
	b.later = nil
	for _, p := range b.beside {
		if p.role == spare {
			b.retire(p)
		}
		if p.up {
			b.carryOutFor(p, p.retirement.Hurry(b.now, lastGrace))
		}
	}
	b.finishWhenAlone()
}

// finishWhenAlone ends everything as soon as the last process is settled.
func (b *Backend) finishWhenAlone() {
	if !b.over || b.stopped || len(b.beside) > 0 {
		return
	}
	b.stopped = true
	for c := range b.calls.all {
		if !c.isRequest() {
			b.calls.remove(c)
		} else if c.state == sent {
			b.lost(c, b.process, reasonRestarted)
		} else {
			b.refuse(c, refusal{reason: reasonUnavailable, text: "the server has shut down; " + c.delivery()})
		}
	}
	b.answerUnsaid()
	b.timers = [timerCount]time.Time{}
	b.world.Finish(b.code)
}
