package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/keep/restart"
)

// exitInterrupted is the shell's status of a program that Ctrl-C ended.
const exitInterrupted = 130

// demoPace is how fast the demo goes.
type demoPace struct {
	call  time.Duration // between two calls of the client
	pause time.Duration // before each end of the server and after the last
}

// usualPace makes the demo take about ten seconds. Its pause keeps requested restarts further apart than the throttle's
// second, so that the demo shows the restart and not the throttle.
var usualPace = demoPace{call: 25 * time.Millisecond, pause: 1800 * time.Millisecond}

const demoLong = `Show that a client does not notice the end of its server. The demo starts "outlive run" with a small built-in MCP
server behind it, and a client that calls a tool every 25 ms and checks every answer. Then the server is killed, exits
with code 42, prints the restart marker, and is restarted by tool. It takes about ten seconds, needs nothing installed,
and leaves nothing behind.

EXIT STATUS
  0      the client saw no error
  1      it saw one, or the demo could not run
  130    Ctrl-C`

func newDemo(io streams) *cobra.Command {
	return &cobra.Command{
		Use:         "demo",
		Annotations: map[string]string{keepsAlive: "yes"}, // it has processes and a directory to clear away
		Short:       "See it work in ten seconds, nothing else needed",
		Long:        demoLong,
		Args:        takes(0, 0),
		RunE:        interruptibly(func(ctx context.Context, _ []string) error { return runDemo(ctx, io.out, usualPace) }),
	}
}

// runDemo shows the demo on out. The error carries the exit status.
func runDemo(ctx context.Context, out *os.File, pace demoPace) (err error) {
	p, err := startDemo()
	if err != nil {
		return fail(exitFailure, "start the demo: %w", err)
	}
	defer func() {
		if e := p.end(); err == nil && e != nil {
			err = fail(exitFailure, "end the demo: %w", e)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var unseen error
	shown := newScreen(out)
	shown.failed = func(err error) { unseen = err; cancel() }
	d := &demo{process: p, screen: shown, caller: &caller{client: p.Client}, pace: pace}
	err = d.show(ctx)
	switch {
	case unseen != nil: // such as behind "| head"
		return fail(exitFailure, "demo: %w", unseen)
	case ctx.Err() != nil:
		d.screen.line("interrupted")
		return &exitError{code: exitInterrupted}
	case err != nil:
		d.screen.line("What outlive said last:\n" + strings.Join(p.stderr.Tail(demoStderrLines), "\n"))
		return fail(exitFailure, "demo: %w", err)
	}
	return nil
}

// demo is one showing.
type demo struct {
	process *demoProcess
	caller  *caller
	screen  *screen
	pace    demoPace
	server  int // process id of the server that answered last
}

// ending is one way in which a server ends in the demo. act returns a remark; it may be "".
type ending struct {
	what string
	act  func(context.Context) (string, error)
}

func (d *demo) endings() []ending {
	return []ending{
		{"killed with SIGKILL", d.kill},
		{"exits with code 42", d.calls("exit", map[string]any{"code": restart.RestartExitCode})},
		{"prints " + restart.Marker, d.calls("marker", nil)},
		{"restart_server is called", d.callRestart},
	}
}

func (d *demo) show(ctx context.Context) error {
	if err := d.greet(ctx); err != nil {
		return err
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		d.caller.steadily(ctx, d.pace.call, quit)
	}()
	err := d.restartAll(ctx)
	close(quit)
	<-done
	if err != nil {
		return err
	}
	return d.sum(ctx)
}

// restartAll ends the server in every way, with pauses in which the client just goes on.
func (d *demo) restartAll(ctx context.Context) error {
	for i, e := range d.endings() {
		if err := d.pass(ctx); err != nil {
			return err
		}
		if err := d.restart(ctx, i+1, e); err != nil {
			return err
		}
	}
	return d.pass(ctx)
}

// greet does the handshake, and prints the versions.
func (d *demo) greet(ctx context.Context) error {
	if _, err := d.process.Initialize(ctx, "2025-11-25"); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if _, err := d.process.Tools(ctx); err != nil {
		return fmt.Errorf("tools/list: %w", err)
	}
	who, err := d.caller.identity(ctx)
	if err != nil {
		return err
	}
	d.server = who.PID
	d.screen.line(fmt.Sprintf("An MCP client calls a tool every %d ms and checks every answer.", d.pace.call.Milliseconds()))
	d.screen.line(fmt.Sprintf("client (pid %d)  ──  outlive run (pid %d)  ──  server (pid %d)\n", os.Getpid(), d.process.cmd.Process.Pid, d.server))
	return nil
}

// pass lets the client go on calling for a pause, and shows it.
func (d *demo) pass(ctx context.Context) error {
	end, show := time.After(d.pace.pause), time.Tick(100*time.Millisecond)
	for {
		select {
		case <-show:
			t := d.caller.tally()
			d.screen.live(fmt.Sprintf("   %d calls, %d errors, server pid %d", t.calls, len(t.errors), d.server))
		case <-end:
			return d.caller.failure()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// restart ends the server in one way and prints what the client noticed.
func (d *demo) restart(ctx context.Context, number int, e ending) error {
	d.caller.forgetLongest()
	more, err := e.act(ctx)
	if err != nil {
		return err
	}
	old := d.server
	if d.server, err = d.caller.waitForAnother(ctx, old); err != nil {
		return err
	}
	gap := d.caller.tally().longest
	d.screen.line(fmt.Sprintf("%d  %-31s server %d → %d, longest wait %.1f ms", number, e.what, old, d.server, milliseconds(gap)))
	if more != "" {
		d.screen.line("   " + more)
	}
	return d.caller.failure()
}

func (d *demo) kill(context.Context) (string, error) {
	p, err := os.FindProcess(d.server)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		return "", fmt.Errorf("kill the server: %w", err)
	}
	return "", nil
}

// calls has the server do it itself, by a tool.
func (d *demo) calls(tool string, args any) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		_, err := d.caller.tool(ctx, tool, args)
		return "", err
	}
}

// callRestart is what an agent does after it changed the server's code.
func (d *demo) callRestart(ctx context.Context) (string, error) {
	since := time.Now().Add(-time.Millisecond).UTC().Format(time.RFC3339Nano)
	if _, err := d.caller.tool(ctx, string(restart.RestartServer), map[string]any{"reason": "demo"}); err != nil {
		return "", err
	}
	return d.caller.tool(ctx, string(restart.VerifyRestarted), map[string]any{"since_timestamp": since})
}

// sum is the last line. outlive itself is asked how often it restarted the server.
func (d *demo) sum(ctx context.Context) error {
	text, err := d.caller.tool(ctx, string(restart.ServerStatus), nil)
	if err != nil {
		return err
	}
	var status struct {
		Restarts int `json:"restart_count"`
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return fmt.Errorf("read server_status: %w", err)
	}
	if want := len(d.endings()); status.Restarts != want {
		return fmt.Errorf("outlive counted %d restarts, want %d", status.Restarts, want)
	}
	if err := errors.Join(d.caller.failure(), d.process.Verify()); err != nil {
		return err
	}
	t := d.caller.tally()
	d.screen.line(fmt.Sprintf("\n%d calls, %d errors. %d restarts, longest wait %.1f ms. The client noticed nothing else.",
		t.calls, len(t.errors), status.Restarts, milliseconds(t.longestEver)))
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
