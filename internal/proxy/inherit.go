package proxy

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/child"
	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// InheritOptions are the settings of [NewInherited].
type InheritOptions struct {
	Command   []string
	Name      string
	StateDir  string
	Supervise supervise.Options
	Sink      event.Sink
}

// Inherited keeps a program alive that has our own three descriptors (S0, to the letter): nothing is copied, and
// nothing of MCP is known. The goroutine of [Inherited.Run] owns it.
type Inherited struct {
	opts    InheritOptions
	machine *supervise.Machine
	news    chan func()
	process *child.Process
	gen     int
	exit    child.Status
	code    int
	over    bool
	running bool
	ended   chan struct{} // closed when Run returns
}

// NewInherited prepares the program; nothing is started yet.
func NewInherited(opts InheritOptions) *Inherited {
	return &Inherited{opts: opts, machine: supervise.New(opts.Supervise), news: make(chan func()), ended: make(chan struct{})}
}

// Run keeps the program alive until it exits 0 or [Inherited.Interrupt], and returns outlive's exit status.
func (h *Inherited) Run() int {
	defer close(h.ended)
	h.step(supervise.Start{})
	for !h.over {
		var due <-chan time.Time
		if at := h.machine.Deadline(); !at.IsZero() {
			due = time.After(time.Until(at))
		}
		select {
		case happened := <-h.news:
			happened()
		case <-due:
			h.carryOut(h.machine.Tick(time.Now(), rand.Float64()))
		}
	}
	return h.code
}

// Interrupt ends the program and then Run. Any goroutine.
func (h *Inherited) Interrupt() { go h.tell(supervise.Stop{Profile: supervise.Signal}) }

// RequestRestart replaces the program. Any goroutine.
func (h *Inherited) RequestRestart(source supervise.Source, reason string) {
	go h.tell(supervise.Restart{Cause: supervise.Requested, Source: source, Reason: reason})
}

// tell brings an event to Run; after the end nobody listens, and it is dropped.
func (h *Inherited) tell(ev supervise.Event) {
	select {
	case h.news <- func() { h.step(ev) }:
	case <-h.ended:
	}
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
			next = append(next, supervise.Drained(a)) // what is in flight, nobody knows
		case supervise.Terminate:
			_ = h.process.Terminate() // an error means that it is gone
		case supervise.Kill:
			_ = h.process.Kill() // likewise
		case supervise.Report:
			a.Tell(fmt.Sprintf("exit code %d", h.exit.Code), h.exit.Code, h.emit)
		case supervise.Finish:
			h.over, h.code = true, a.Code
		}
	}
	for _, ev := range next {
		h.step(ev)
	}
}

// spawn starts the program and returns how that went. It is up once it runs.
func (h *Inherited) spawn(a supervise.Spawn) supervise.Event {
	h.gen = a.Gen
	h.emit(event.ServerStarting, slog.LevelInfo, fmt.Sprintf("Starting server (restart #%d)", h.machine.Restarts()))
	env := append(os.Environ(), "OUTLIVE=1", "OUTLIVE_NAME="+h.opts.Name, "OUTLIVE_GENERATION="+strconv.Itoa(a.Gen),
		"OUTLIVE_RESTART_REASON="+a.Reason, "OUTLIVE_STATE_DIR="+h.opts.StateDir)
	process, err := child.Start(child.Spec{Argv: h.opts.Command, Env: env, Inherit: true}, func(s child.Status) {
		h.exited(a.Gen, s)
	})
	if err != nil {
		h.exit = child.Status{Code: 127}
		h.emit(event.SpawnFailed, slog.LevelError, "Server could not be started: "+err.Error(),
			slog.String(event.KeyError, err.Error()))
		return supervise.SpawnFailed{Gen: a.Gen, Err: err}
	}
	h.process, h.running = process, true
	h.emit(event.ServerSpawned, slog.LevelInfo, fmt.Sprintf("Server spawned (PID: %d)", process.PID()))
	return supervise.Ready{Gen: a.Gen}
}

// exited brings an exit to Run; it is called from the process's own goroutine.
func (h *Inherited) exited(gen int, s child.Status) {
	h.news <- func() {
		h.exit = s
		h.emit(event.ServerExited, slog.LevelInfo, fmt.Sprintf("Server exited (code: %d)", s.Code),
			slog.Int(event.KeyExitCode, s.Code), slog.Int64(event.KeyUptimeMS, s.Uptime.Milliseconds()),
			slog.Int64(event.KeyMaxRSS, s.MaxRSS), slog.Int64(event.KeyCPUMS, s.CPU.Milliseconds()))
		h.running = false
		h.step(supervise.Exited{Gen: gen, Code: s.Code, Signalled: s.Signalled})
		h.step(supervise.Gone{Gen: gen})
	}
}

func (h *Inherited) emit(t event.Type, level slog.Level, message string, attrs ...slog.Attr) {
	pid := 0
	if h.running {
		pid = h.process.PID()
	}
	h.opts.Sink.Emit(event.Event{Type: t, Time: time.Now(), Level: level, Message: message, Generation: h.gen,
		ServerPID: pid, RestartCount: h.machine.Restarts(), Attrs: attrs})
}
