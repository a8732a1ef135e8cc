package proxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/line/host"
	"github.com/outlive-mcp/outlive/internal/line/lineloop"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// InheritOptions are the settings of [NewInherited].
type InheritOptions struct {
	Command   []string
	Name      string
	StateDir  string
	KillMode  child.KillMode // what is ended with the program (default its whole process tree)
	Supervise supervise.Options
	Sink      event.Sink
}

// Inherited keeps a program alive that has our own three descriptors (the watchdog, exactly as in WD-7): nothing is
// copied, and MCP is not interpreted. The goroutine of [Inherited.Run] owns it.
type Inherited struct {
	opts    InheritOptions
	machine *supervise.Machine
	loop    *lineloop.Loop // has no lines
	process *child.Process
	gen     int
	exit    child.Status
	code    int
	running bool
	since   time.Time     // when the program was started
	exitAt  time.Time     // when the previous one ended
	waiters host.Waiters  // for the next start
	ended   chan struct{} // closed when Run returns
}

// NewInherited prepares the program; nothing is started yet.
func NewInherited(opts InheritOptions) (*Inherited, error) {
	loop, err := lineloop.NewLoop()
	if err != nil {
		return nil, fmt.Errorf("make event loop: %w", err)
	}
	h := &Inherited{opts: opts, machine: supervise.New(opts.Supervise), loop: loop, ended: make(chan struct{})}
	loop.Deadline = h.machine.Deadline
	loop.OnTick = func(now time.Time) { h.carryOut(h.machine.Tick(now, rand.Float64())) }
	return h, nil
}

// clientGrace is how long the program may continue once no process can write to its stdin any more and it has read
// everything. Whether it still works for its client cannot be known here, so it gets more time than in the usual
// mode.
const clientGrace = 3 * time.Second

// watchClient ends the program if it continues after its client has left. The returned function ends the goroutine.
func (h *Inherited) watchClient() (stop func()) {
	quit, end, err := os.Pipe()
	if err != nil {
		return func() {} // the program has to notice the end itself, as without outlive
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !awaitHangup(os.Stdin, quit) {
			return
		}
		select {
		case <-time.After(clientGrace):
			h.stop(supervise.ClientEOF)
		case <-h.ended:
		}
	}()
	return func() {
		_ = end.Close()
		<-done
		_ = quit.Close()
	}
}

// Run keeps the program alive until it exits 0, its client leaves or [Inherited.Interrupt] is called, and returns
// outlive's exit status.
func (h *Inherited) Run() int {
	defer h.watchClient()()
	defer close(h.ended)
	h.step(supervise.Start{})
	h.loop.Run()
	return h.code
}

// Interrupt ends the program and then Run. Any goroutine.
func (h *Inherited) Interrupt() { h.stop(supervise.Signal) }

func (h *Inherited) stop(p supervise.Profile) {
	h.loop.Post(func() { h.step(supervise.Stop{Profile: p}) })
}

// Restart replaces the program and returns when the next one runs, or says why it does not. Any goroutine.
func (h *Inherited) Restart(ctx context.Context, source supervise.Source, reason string) error {
	failed, err := lineloop.AskLater(ctx, h.loop, h.ended, ErrEnded, func(tell func(error)) {
		h.waiters.Add(h.gen, tell)
		h.step(supervise.Restart{Cause: supervise.Requested, Source: source, Reason: reason})
	})
	return cmp.Or(err, failed)
}

// Status returns the program's state. What passes between it and its client is not known. Any goroutine.
func (h *Inherited) Status(ctx context.Context) (backend.Status, error) {
	return lineloop.Ask(ctx, h.loop, h.ended, ErrEnded, func() backend.Status { return h.status(time.Now()) })
}

// Used is zero: whether the client makes use of the program is not known.
func (h *Inherited) Used(context.Context) (backend.Status, error) { return backend.Status{}, nil }

func (h *Inherited) status(now time.Time) backend.Status {
	snap := h.machine.Snapshot()
	s := backend.Status{Name: h.opts.Name, Command: h.opts.Command, State: snap.State.String(), Since: snap.Stands, Generation: h.gen,
		RestartCount: h.machine.Restarts(), Reload: string(backend.ReplaceReload)}
	if h.running {
		s.ServerPID, s.UptimeMS = h.process.PID(), now.Sub(h.since).Milliseconds()
		if u, err := child.TreeUsage(s.ServerPID); err == nil {
			s.RSS = u.RSS
		}
	}
	if !snap.NextTry.IsZero() && !h.running {
		s.NextTryAt = &snap.NextTry
	}
	if !h.exitAt.IsZero() {
		s.LastExit = &backend.LastExit{Code: h.exit.Code, Signal: h.exit.Signal, Why: fmt.Sprintf("exit status %d", h.exit.Code), At: h.exitAt}
	}
	return s
}

func (h *Inherited) step(ev supervise.Event) {
	h.carryOut(h.machine.Step(time.Now(), rand.Float64(), ev))
}

func (h *Inherited) carryOut(actions []supervise.Action) {
	var next []supervise.Event
	for _, a := range actions {
		switch a := a.(type) {
		case supervise.Spawn:
			next = append(next, h.spawn(a))
		case supervise.BeginDrain:
			next = append(next, supervise.Drained(a)) // what is in flight is not known
		case supervise.CloseStdin:
			next = append(next, supervise.Drained(a))
		case supervise.Terminate:
			_ = h.process.Terminate() // an error means that it has ended
		case supervise.Kill:
			_ = h.process.Kill() // likewise
		case supervise.Report:
			a.Tell(supervise.End{Text: fmt.Sprintf("Server crashed (exit code %d)", h.exit.Code), Code: h.exit.Code}, h.emit)
		case supervise.Finish:
			h.code = a.Code
			h.loop.Stop()
		}
	}
	for _, ev := range next {
		h.step(ev)
	}
}

// spawn starts the program and returns the resulting event. It counts as up once it runs.
func (h *Inherited) spawn(a supervise.Spawn) supervise.Event {
	h.gen = a.Gen
	h.emit(event.ServerStarting, slog.LevelInfo, fmt.Sprintf("Starting server (restart #%d)", h.machine.Restarts()))
	env := append(os.Environ(), "OUTLIVE=1", "OUTLIVE_NAME="+h.opts.Name, "OUTLIVE_GENERATION="+strconv.Itoa(a.Gen),
		"OUTLIVE_RESTART_REASON="+a.Reason, "OUTLIVE_STATE_DIR="+h.opts.StateDir)
	process, err := child.Start(child.Spec{Argv: h.opts.Command, Env: env, Inherit: true, KillMode: h.opts.KillMode}, func(s child.Status) {
		h.exited(a.Gen, s)
	})
	if err != nil {
		status, _ := child.ShellStatus(err)
		h.exit, h.exitAt = child.Status{Code: status}, time.Now()
		h.waiters.TellOf(h.gen, err)
		h.emit(event.SpawnFailed, slog.LevelError, "Server could not be started: "+err.Error(),
			slog.String(event.KeyError, err.Error()))
		return supervise.SpawnFailed{Gen: a.Gen, Status: status}
	}
	h.process, h.running, h.since = process, true, time.Now()
	h.waiters.TellOf(h.gen, nil)
	h.emit(event.ServerSpawned, slog.LevelInfo, fmt.Sprintf("Server spawned (PID: %d)", process.PID()))
	return supervise.Ready{Gen: a.Gen}
}

// exited passes an exit to Run; it is called on the process's own goroutine.
func (h *Inherited) exited(gen int, s child.Status) {
	h.loop.Post(func() {
		h.exit, h.exitAt = s, time.Now()
		h.emit(event.ServerExited, slog.LevelInfo, fmt.Sprintf("Server exited (code: %d)", s.Code),
			slog.Int(event.KeyExitCode, s.Code), slog.Int64(event.KeyUptimeMS, s.Uptime.Milliseconds()),
			slog.Int64(event.KeyMaxRSS, s.MaxRSS), slog.Int64(event.KeyCPUMS, s.CPU.Milliseconds()))
		h.running = false
		h.step(supervise.Exited{Gen: gen, Code: s.Code, Signalled: s.Signalled})
		h.step(supervise.TreeGone{Gen: gen})
	})
}

func (h *Inherited) emit(t event.Type, level slog.Level, message string, attrs ...slog.Attr) {
	pid := 0
	if h.running {
		pid = h.process.PID()
	}
	h.opts.Sink.Emit(event.Event{Type: t, Time: time.Now(), Level: level, Message: message, Generation: h.gen,
		ServerPID: pid, RestartCount: h.machine.Restarts(), Attrs: attrs})
}
