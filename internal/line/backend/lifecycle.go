package backend

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/secret"
	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// lifecycle feeds the machine with events and carries out its decisions: start, drain, end. Nothing else does.
type lifecycle struct {
	*core

	events      []supervise.Event // not yet given to the machine
	stepping    bool
	closeWanted bool       // the server's stdin is to be closed once nothing waits for it
	stuck       []*process // were killed and have not ended; nothing waits for them any more
	code        int        // to finish with
}

const (
	// drainFor is how long the output of an exited process is still read: a descendant may hold the pipe.
	drainFor = 500 * time.Millisecond
	// lastGrace is the time between Terminate and Kill for retired processes when everything ends. See Retirement.Hurry.
	lastGrace = 300 * time.Millisecond
	// closedFor is how long a process that closed its stdout may take to exit.
	closedFor = time.Second
	// stuckAfter is how long a process that was killed may take to end. The keeper waits up to 10 s for its descendants before it tells.
	stuckAfter = 15 * time.Second
)

// Exit is how a process ended.
type Exit struct {
	Code      int    // 128+N for signal N
	Signal    string // "" or its name
	Signalled bool
	MaxRSS    int64 // bytes
	CPU       time.Duration
	Unstarted error // it could not be started
	// Connection: it was a connection to a remote server, which ended because of Why; "": it was closed.
	Connection bool
	Why        string
	// Stuck: it was killed and has not ended. What it was given may be done yet, so none of it counts as unread.
	Stuck bool
	// Unread is how many of the bytes for the process's stdin it never read, including our own queue.
	Unread int
}

// step gives the machine an event and carries out its decision. Further events that this causes are handled after it.
func (lc *lifecycle) step(ev supervise.Event) {
	lc.events = append(lc.events, ev)
	if !lc.stepping {
		lc.act(nil)
	}
}

// tick lets the machine decide what its own timers are for. The time for a handshake does not count while a user logs in, nor
// while a launcher installs the server.
func (lc *lifecycle) tick() {
	if at := lc.machine.Deadline(); !at.IsZero() && !lc.now.Before(at) {
		lc.allowForInstalling()
	}
	if lc.machine.State() == supervise.Starting && lc.login() != "" {
		lc.step(supervise.Handshake{Gen: lc.process.gen})
	}
	lc.act(lc.machine.Tick(lc.now, lc.world.Rand()))
}

// allowForInstalling gives those more time whose launcher installs the server.
func (lc *lifecycle) allowForInstalling() {
	if lc.machine.State() == supervise.Starting && !lc.machine.Unasked() && lc.installing(lc.process) {
		lc.step(supervise.Handshake{Gen: lc.process.gen})
	}
	for _, p := range lc.beside {
		if p.role == spare && lc.installing(p) {
			lc.step(supervise.Handshake{Gen: p.gen})
		}
	}
}

// act carries out what the machine has decided, and then tells it of the events that wait, in their order.
func (lc *lifecycle) act(actions []supervise.Action) {
	lc.stepping = true
	lc.carryOut(actions)
	for len(lc.events) > 0 {
		next := lc.events[0]
		lc.events = lc.events[1:]
		lc.carryOut(lc.machine.Step(lc.now, lc.world.Rand(), next))
	}
	lc.stepping = false
}

func (lc *lifecycle) carryOut(actions []supervise.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case supervise.Spawn:
			lc.spawn(a)
		case supervise.BeginDrain:
			lc.process.mark(mustDrain)
			lc.health.watchCalls(lc.process)
			lc.checkDrained()
		case supervise.CloseStdin:
			if lc.closing { // the client has left: after the queue was sent
				lc.closeWanted = true
				lc.closeInputWhenFlushed()
			} else { // at once: the queue is for the next process
				lc.process.shutInput()
			}
		case supervise.Terminate:
			lc.process.server.Terminate()
		case supervise.Kill:
			lc.kill(lc.process)
		case supervise.SpawnSpare:
			lc.spares.wantSpare(a)
		case supervise.Throttled:
			a.Tell(lc.emit)
		case supervise.TakeOver:
			lc.spares.takeOver(a)
		case supervise.Dismiss:
			lc.spares.dismiss(a.Gen)
		case supervise.ReloadFailed:
			lc.spares.reloadFailed(a)
		case supervise.Report:
			lc.report(a)
		case supervise.Finish:
			lc.finishAll(a.Code)
		}
	}
}

// spawn starts the next serving process and its handshake.
func (lc *lifecycle) spawn(a supervise.Spawn) {
	lc.prober.newProcessForProbe()
	p, err := lc.start(Launch{Gen: a.Gen, Why: a.Reason, Anew: anew(a.Cause, a.Source)}, serving)
	if err != nil {
		status, _ := child.ShellStatus(err)
		lc.history.lastOut = lastExit{kind: neverStarted, code: -1, shell: status, at: lc.now, why: "could not be started: " + err.Error()}
		if !lc.Unspoken() {
			status = 0 // a client waits, and is told
		}
		lc.step(supervise.SpawnFailed{Gen: a.Gen, Status: status})
		lc.handshake.firstTryFailed()
		return
	}
	lc.replay.greet(p)
}

// anew reports whether a start should load new code.
func anew(c supervise.Cause, s supervise.Source) bool {
	return c == supervise.Requested && s != supervise.SourceLimit
}

// start starts a process.
func (lc *lifecycle) start(l Launch, r role) (*process, error) {
	p := &process{gen: l.Gen, role: r, started: lc.now, showing: &lc.showing}
	p.follow(lc.process)
	if r == serving {
		lc.process = p
	}
	text := fmt.Sprintf("Starting server (restart #%d)", lc.restarts())
	if lc.opts.Remote {
		text = "Opening a connection"
	}
	lc.emitOf(p, event.ServerStarting, slog.LevelInfo, text)
	server, err := lc.world.Start(l)
	if err != nil {
		lc.tellUnstarted(p, err)
		return nil, fmt.Errorf("start server: %w", err)
	}
	p.server = server
	p.mark(spawned)
	if r != serving {
		lc.beside = append(lc.beside, p)
	}
	if pid := server.PID(); pid != NotSpawned {
		lc.spawned(p, pid)
	}
	return p, nil
}

func (lc *lifecycle) tellUnstarted(p *process, err error) {
	lc.emitOf(p, event.SpawnFailed, slog.LevelError, "Server could not be started: "+err.Error(), slog.String(event.KeyError, err.Error()))
}

func (lc *lifecycle) spawned(p *process, pid int) {
	p.pid = pid
	text := fmt.Sprintf("Server spawned (PID: %d)", pid)
	if pid == 0 {
		text = "Connecting to " + secret.Line(lc.opts.Command) // it runs remotely
	}
	lc.emitOf(p, event.ServerSpawned, slog.LevelInfo, text)
}

// kill kills p. An end that does not come is waited for only so long; a connection always ends.
func (lc *lifecycle) kill(p *process) {
	p.server.Kill()
	if p.endBy.IsZero() && !lc.opts.Remote {
		p.endBy = lc.now.Add(stuckAfter)
	}
}

// shutInput closes the server's stdin. Later messages are not for this process.
func (p *process) shutInput() {
	p.mark(mustDrain)
	p.shut = true
	p.server.CloseInput()
}

// wake starts a process if none runs because none was needed.
func (lc *lifecycle) wake() { lc.step(supervise.Start{}) }

// report emits a transition as an event.
func (lc *lifecycle) report(r supervise.Report) {
	switch r.To {
	case supervise.Stopping:
		lc.history.beginRestart(r)
	case supervise.Serving:
		lc.history.decided(r)
		if r.Recovered {
			lc.emit(event.BreakerClosed, slog.LevelInfo, "Server is up again")
		}
	default:
		lc.history.decided(r)
		switch r.To {
		case supervise.Failed:
			lc.handshake.giveUpFirst()
			lc.flow.refuseWaiting()
		case supervise.Backoff:
			lc.flow.refuseLate()
		}
	}
}

// restarting reports whether the server does not serve now, or a replacement is coming up.
func (lc *lifecycle) restarting() bool {
	return lc.machine.Reloading() || lc.machine.State() != supervise.Serving
}

// restart requests a planned restart; source and reason are recorded. The monitor requests it because of calls that do
// not go on, so the old process is not given the usual time to finish them.
func (lc *lifecycle) restart(source supervise.Source, reason string) {
	if source == supervise.SourceMonitor {
		lc.process.stalled = true
	}
	lc.step(supervise.Restart{Cause: supervise.Requested, Source: source, Reason: reason, Overlap: lc.spares.mayOverlap()})
}
