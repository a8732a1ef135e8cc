package backend

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/bridge"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// processTick handles what is due for one process.
func (lc *lifecycle) processTick(p *process) {
	due := func(t *time.Time) bool {
		if t.IsZero() || lc.now.Before(*t) {
			return false
		}
		*t = time.Time{}
		return true
	}
	if due(&p.settingsBy) {
		lc.replay.restored(p)
	}
	if due(&p.levelBy) {
		lc.flow.levelKnown(p)
	}
	if t := p.trial.deadline(); !t.IsZero() && !lc.now.Before(t) {
		lc.streams.trialTick(p)
	}
	if due(&p.drainBy) {
		p.server.Abandon()
		lc.outputEnded(p)
	}
	if due(&p.closedBy) { // it has closed its stdout and does not exit
		if p.role == serving {
			lc.step(supervise.StdoutClosed{Gen: p.gen})
		} else {
			lc.kill(p)
		}
	}
	if p.retirement != nil && p.up() {
		lc.spares.carryOutFor(p, p.retirement.Tick(lc.now))
	}
	if due(&p.endBy) {
		lc.isStuck(p)
	}
}

func (lc *lifecycle) closeInputWhenFlushed() {
	if !lc.closeWanted {
		return
	}
	p := lc.process
	// A process that starts is waited for only if the client waits for it. The client's own handshake is answered first: some servers
	// drop what they work at when their input ends.
	ready := p.accepting() || p.up() && !lc.flow.busy(p)
	if ready && lc.calls.waiting == 0 && !lc.eras.unsaid() && !lc.spares.working() {
		lc.closeWanted = false
		p.shutInput()
		lc.checkDrained()
	}
}

// checkDrained tells the machine when a process that must end has nothing in flight.
func (lc *lifecycle) checkDrained() {
	if p := lc.process; p.drains() && !lc.flow.busy(p) {
		lc.step(supervise.Drained{Gen: p.gen})
	}
	lc.spares.checkRetired()
	lc.closeInputWhenFlushed()
}

// isStuck gives up waiting for the end of p, which SIGKILL does not end: another user's process, or one that is stuck in the kernel.
func (lc *lifecycle) isStuck(p *process) {
	if p.server.PID() == NotSpawned {
		p.endBy = lc.now.Add(stuckAfter) // it is killed once it is there
		return
	}
	lc.stuck = append(lc.stuck, p)
	p.server.Abandon()
	p.closed = true
	lc.exited(p, Exit{Code: -1, Stuck: true})
}

// endsAfterAll forgets a stuck process that has ended.
func (lc *lifecycle) endsAfterAll(gen int, exit Exit) {
	at := slices.IndexFunc(lc.stuck, func(p *process) bool { return p.gen == gen })
	if at >= 0 {
		lc.tellExit(lc.stuck[at], exit)
		lc.stuck = slices.Delete(lc.stuck, at, at+1)
	}
}

// exited handles the exit of a process.
func (lc *lifecycle) exited(p *process, exit Exit) {
	now := lc.now
	p.endBy = time.Time{}
	if exit.Unstarted != nil {
		exit.Unread = int(p.sent)
	}
	shell, _ := child.ShellStatus(exit.Unstarted)
	p.undelivered = uint64(exit.Unread)
	p.ending = lastExit{code: exit.Code, shell: shell, signal: exit.Signal, at: now, why: lc.whyExited(p, exit), ended: lc.whyEnded(p)}
	switch {
	case exit.Unstarted != nil:
		p.ending.kind = neverStarted
	case exit.Stuck:
		p.ending.kind, p.ending.ended = neverEnded, ""
	}
	if exit.Connection {
		p.ending.code, p.ending.kind, p.ending.ended = -1, connectionEnded, ""
	} else {
		p.ending.stderr = p.server.LastStderr(stderrShown)
	}
	if exit.Unstarted != nil {
		lc.tellUnstarted(p, exit.Unstarted)
	} else {
		lc.tellExit(p, exit)
	}
	p.mark(hasExited)
	p.trial = trial{}
	switch p.role {
	case serving:
		lc.servingExited(p, exit)
	case spare:
		p.role = retired // there is nothing left to end
		lc.step(supervise.SpareFailed{Gen: p.gen, Reason: "it " + p.ending.why})
	}
	if p.closed {
		lc.outputEnded(p)
	} else {
		p.drainBy = now.Add(drainFor)
	}
}

func (lc *lifecycle) tellExit(p *process, exit Exit) {
	if exit.Stuck {
		lc.emitOf(p, event.ServerStuck, slog.LevelWarn, fmt.Sprintf("Server does not end even when it is killed (PID: %d): it is waited for no longer, and may still be at work", p.pid))
		return
	}
	if exit.Connection {
		lc.emitOf(p, event.ServerExited, slog.LevelInfo, "Connection ended: "+p.ending.why,
			slog.String(event.KeyReason, p.ending.why), slog.Int64(event.KeyUptimeMS, lc.now.Sub(p.started).Milliseconds()))
		return
	}
	attrs := []slog.Attr{
		slog.Int(event.KeyExitCode, exit.Code), slog.Int64(event.KeyUptimeMS, lc.now.Sub(p.started).Milliseconds()),
		slog.Int64(event.KeyMaxRSS, exit.MaxRSS), slog.Int64(event.KeyCPUMS, exit.CPU.Milliseconds()),
	}
	if exit.Signal != "" {
		attrs = append(attrs, slog.String(event.KeySignal, exit.Signal))
	}
	lc.emitOf(p, event.ServerExited, slog.LevelInfo, fmt.Sprintf("Server exited (code: %d)", exit.Code), attrs...)
}

func (lc *lifecycle) servingExited(p *process, exit Exit) {
	lc.history.lastOut = p.ending
	// A process that exited before it read the probe did not exit because of it; the next one gets the probe.
	probed := lc.prober.probing() && exit.Unread == 0 && !exit.Stuck
	if probed {
		lc.prober.probeFailed("exits")
	}
	lc.step(supervise.Exited{Gen: p.gen, Code: exit.Code, Signalled: exit.Signalled, Probe: probed, Reason: exit.Why})
	if lc.machine.Snapshot().Cause == supervise.Crash && !exit.Connection {
		lc.health.crashed(p)
	}
	if lc.history.begun.IsZero() && lc.machine.Snapshot().Cause != supervise.Idle {
		lc.history.begun = lc.now
	}
}

func (lc *lifecycle) whyExited(p *process, exit Exit) string {
	snap := lc.machine.Snapshot()
	switch {
	case exit.Unstarted != nil:
		return "could not be started: " + exit.Unstarted.Error()
	case exit.Stuck:
		return fmt.Sprintf("does not end even when it is killed (PID %d)", p.pid)
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

// whyEnded is why outlive has ended p, if it had failed; "" if it exited by itself, or for a restart.
func (lc *lifecycle) whyEnded(p *process) string {
	snap := lc.machine.Snapshot()
	if p.role == serving && (snap.Cause == supervise.StartFail || snap.Cause == supervise.Unhealthy || snap.Cause == supervise.Memory) {
		return snap.Reason
	}
	return ""
}

// outputEnded settles the requests of a dead process, and lets the machine decide what to do next.
func (lc *lifecycle) outputEnded(p *process) {
	p.drainBy, p.closedBy, p.settingsBy, p.levelBy = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	lc.noiseLog.flush(p)
	lc.questions.forget(p)
	lc.asks.cancelAll(p, "server restarted")
	if p.role != serving { // requests of a retired one go to the serving one
		lc.flow.recoverCalls(p, true)
		lc.leave(p)
		lc.flow.flushQueue()
		lc.finishWhenAlone()
		return
	}
	if len(lc.beside) == 0 {
		lc.eras.tellBridge((*bridge.Bridge).Reborn)
	}
	lc.streams.cut = nil // these streams continue at the next process
	lc.disarm(timerCut)
	lc.tools.settleCalls()
	lc.flow.recoverCalls(p, lc.machine.Snapshot().Planned)
	lc.handshake.firstTryFailed()
	lc.step(supervise.TreeGone{Gen: p.gen})
	if lc.stopped || lc.over {
		return
	}
	lc.tools.answerVerify(false)
	if lc.hopeless() {
		lc.handshake.giveUpFirst()
		lc.flow.refuseWaiting()
	}
}

// finishAll ends the connection and answers everything that is open.
func (lc *lifecycle) finishAll(code int) {
	if lc.stopped || lc.over {
		return
	}
	lc.over, lc.code = true, code
	lc.spares.hurry()
	lc.finishWhenAlone()
}

// finishWhenAlone ends everything as soon as the last process is settled.
func (lc *lifecycle) finishWhenAlone() {
	if !lc.over || lc.stopped || len(lc.beside) > 0 {
		return
	}
	lc.stopped = true
	lc.flow.endAll()
	lc.eras.answerUnsaid()
	lc.timers = [timerCount]time.Time{}
	lc.world.Finish(lc.code)
}
