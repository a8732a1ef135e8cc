package agentrun

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/files/batchfile"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// Options of [Run].
type Options struct {
	// Home is where the monitor's agents are; the report goes to its folder "run".
	Home string
	// Agent is the agent's name, see [heartbeat.ValidName].
	Agent string
	// Command is the agent's program and its arguments.
	Command []string
	// Dir is the agent's working directory. "": ours.
	Dir string
	// Environ is the agent's environment, to which OUTLIVE_AGENT and, on Linux, NOTIFY_SOCKET are added.
	Environ []string
	// In, Out and Err are our streams. They stay the caller's.
	In, Out, Err *os.File
	// NoInput gives the agent an empty stdin instead of ours. It counts for pipes only: a terminal can be written to.
	NoInput bool
	// Keep is a file that the agent's output is kept in as well, rotated ([logline.Kept]), with a line of our own at its start
	// and at its end. "": it is not kept.
	Keep string
	// Terminal gives the agent a terminal even where we have none: people join it later ([Attach]). Until then we answer
	// the agent's terminal queries. Not on Windows, see [KeepsTerminals].
	Terminal bool
	// Pipes gives the agent no terminal even where there is one.
	Pipes bool
}

// StartError is the error of [Run] when the agent could not be started.
type StartError struct {
	Code int // 127: there is no such program; 126: it cannot be run. The shell's conventions
	Err  error
}

// Error says what could not be started, and why.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns why.
func (e *StartError) Unwrap() error { return e.Err }

// AgentVariable is the environment variable with the agent's name.
const AgentVariable = "OUTLIVE_AGENT"

// Run runs an agent's command until it ends, and returns its exit. SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2
// are forwarded to the agent's group; they end us only by ending the agent. A failure to write the report is returned
// beside the exit, after the agent has ended. Without an exit nothing was run.
func Run(o Options) (*Exit, error) {
	if err := heartbeat.ValidName(o.Agent); err != nil {
		return nil, err
	}
	if len(o.Command) == 0 {
		return nil, errors.New("no command")
	}
	path := Path(o.Home, o.Agent)
	lock, err := claim(path)
	if err != nil {
		return nil, fmt.Errorf("run agent %s: %w", o.Agent, err)
	}
	defer lock.Close()
	heard := hear() // before the agent runs: a signal in between would end only us
	defer signal.Stop(heard)
	w := &wrapper{o: o, path: path, seen: newSeen(begin(o)), heard: heard}
	if o.Keep != "" {
		w.kept = logline.OpenKept(o.Keep, logline.KeptOptions{})
	}
	if err := w.start(); err != nil {
		code := startCode(err)
		w.seen.output(1, []byte(err.Error()), time.Now(), unshared)
		w.seen.exit(Exit{Code: code, At: time.Now()})
		w.keepLine("not started: %v", err)
		return nil, &StartError{code, errors.Join(fmt.Errorf("run agent %s: %w", o.Agent, err), write(path, w.seen.snapshot()), w.closeKept())}
	}
	exit := w.wait()
	return &exit, w.finish(exit)
}

// begin is the report before the agent runs.
func begin(o Options) Report {
	id := process.System{}.Identify(os.Getpid())
	return Report{Version: 1, Agent: o.Agent, Headless: agentcli.Headless(o.Command, o.terminal()), PID: id.PID, Start: id.Start, Boot: id.Boot, Wrapper: id, StartedAt: time.Now()}
}

func startCode(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// wrapper is one run.
type wrapper struct {
	o        Options
	path     string
	seen     *seen
	heard    chan os.Signal
	listener *heartbeat.Listener // nil: there is none
	streams  *streams
	agent    *agent
	recorder *recorder
	kept     *logline.Kept // nil: the output is not kept
}

func (w *wrapper) start() (err error) {
	cmd := exec.Command(w.o.Command[0], w.o.Command[1:]...)
	if cmd.Err != nil {
		return cmd.Err
	}
	if err := batchfile.Prepare(cmd); err != nil {
		return err
	}
	cmd.Dir = w.o.Dir
	cmd.Env = w.environ()
	defer func() {
		if err != nil {
			w.closeListener()
		}
	}()
	if w.streams, err = open(w.o, cmd, w.seen); err != nil {
		return err
	}
	for _, p := range w.streams.pumps {
		p.kept = w.kept
	}
	if err := w.streams.openSocket(SocketPath(w.o.Home, w.o.Agent)); err != nil {
		w.keepLine("its terminal cannot be joined: %v", err) // it works nevertheless
	}
	at := time.Now()
	if w.agent, err = startAgent(cmd, w.streams.alone); err != nil {
		w.streams.abandon()
		w.streams.terminal.endSharing(Exit{Code: startCode(err), At: at})
		return err
	}
	w.seen.started(w.agent.pid, at, w.streams.terminal == nil)
	w.keepLine("started: %s", strings.Join(w.o.Command, " "))
	if rows, cols := w.seen.size(); cols > 0 { // by which [Text] draws the output again
		w.keepLine("its terminal has %d columns and %d rows", cols, rows)
	}
	w.recorder = record(w.seen, func(r Report) error { return write(w.path, r) })
	w.streams.run()
	return nil
}

// environ is the agent's environment. Our notify socket replaces an inherited one: the agent's messages are about the
// agent. The inherited watchdog time is removed, since it is ours.
func (w *wrapper) environ() []string {
	changes := map[string]string{AgentVariable: w.o.Agent}
	if w.o.Terminal && !w.o.Pipes {
		changes["TERM"] = terminalOf(w.o.Environ)
	}
	socket := strings.TrimSuffix(w.path, filepath.Ext(w.path)) + ".sock"
	var err error
	w.listener, err = heartbeat.Listen(socket, func(pid int, n heartbeat.Notice) { w.seen.notice(pid, n, time.Now()) })
	if err == nil {
		changes["NOTIFY_SOCKET"] = socket
	} else {
		w.listener = nil // the agent can do without: most never use it
	}
	var environ []string
	for _, kv := range w.o.Environ {
		name, _, _ := strings.Cut(kv, "=")
		_, changed := changes[name]
		if !changed && name != "WATCHDOG_USEC" && name != "WATCHDOG_PID" {
			environ = append(environ, kv)
		}
	}
	for name, value := range changes {
		environ = append(environ, name+"="+value)
	}
	return environ
}

// terminalOf is TERM for a terminal that nobody has joined: what a service manager sets, or nothing, is not used.
func terminalOf(environ []string) string {
	for _, kv := range slices.Backward(environ) {
		if kind, ok := strings.CutPrefix(kv, "TERM="); ok && kind != "" && kind != "dumb" && kind != "linux" {
			return kind
		}
	}
	return "xterm-256color"
}

// wait forwards signals until the agent has ended.
func (w *wrapper) wait() Exit {
	for {
		select {
		case sig := <-w.heard:
			w.signal(sig)
		case exit := <-w.agent.events:
			if exit != nil {
				w.seen.exit(*exit) // reported at once, even if its last output is still coming
				return *exit
			}
			w.agentStopped()
		}
	}
}

// finish forwards the remaining output, and closes everything.
func (w *wrapper) finish(exit Exit) error {
	w.streams.drain()
	w.streams.terminal.endSharing(exit)
	if w.streams.terminal.typed() && exit.Signal != "" {
		_, _ = io.WriteString(w.o.Out, w.seen.left()) // a terminal that has gone needs no setting back
	}
	w.streams.terminal.close()
	w.closeListener()
	w.keepLine("%s", exit.ending())
	var errs []error
	if err := w.recorder.close(); err != nil {
		errs = append(errs, fmt.Errorf("agent %s has ended, but its report could not be written: %w", w.o.Agent, err))
	}
	return errors.Join(append(errs, w.closeKept())...)
}

func (w *wrapper) closeKept() error {
	if w.kept == nil {
		return nil
	}
	return w.kept.Close()
}

func (w *wrapper) closeListener() {
	if w.listener != nil {
		_ = w.listener.Close() // its socket, left behind, would be replaced by the next run
	}
}
