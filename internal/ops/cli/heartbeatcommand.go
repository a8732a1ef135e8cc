package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/files/batchfile"
)

// beatEvery is the heartbeat interval of a running command.
const beatEvery = 30 * time.Second

// beatWhile runs a command with our own streams, and beats for it until it ends.
func beatWhile(io streams, dir string, o heartbeat.Observation, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.in, io.out, io.err
	cmd.Env = append(os.Environ(), "OUTLIVE_AGENT="+o.Agent)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append(passedOn, os.Interrupt)...)
	defer signal.Stop(signals)
	err := batchfile.Prepare(cmd)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		code := exitNotExecutable
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			code = exitNotFound
		}
		return &exitError{code, err}
	}
	if p, err := (process.System{}).Look(cmd.Process.Pid); err == nil {
		o.PID, o.Start = p.PID, p.Start
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	lost := false
	err = beatUntil(ended, signals, func() { lost = tellBeat(io, dir, o, lost) }, func(sig os.Signal) {
		_ = cmd.Process.Signal(sig) // it may have ended by now
	})
	code, how := endOf(err)
	o.State, o.Note, o.Next = heartbeat.Done, how, 0
	if code != 0 {
		o.State = "" // neither stopped on purpose nor done: the monitor judges it
	}
	tellBeat(io, dir, o, lost)
	return exitWith(code)
}

// beatUntil beats at once and every [beatEvery] until the command has ended, and passes signals on to it.
func beatUntil(ended <-chan error, signals <-chan os.Signal, beat func(), pass func(os.Signal)) error {
	beat()
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			beat()
		case sig := <-signals:
			if sig != os.Interrupt { // the terminal sends it to the command, too, and a second one would have another meaning
				pass(sig)
			}
		case err := <-ended:
			return err
		}
	}
}

// tellBeat sends a heartbeat. A failure is reported once, and does not end the command.
func tellBeat(io streams, dir string, o heartbeat.Observation, lost bool) bool {
	err := beat(dir, o)
	if err != nil && !lost {
		fmt.Fprintln(io.err, "outlive: warning:", err)
	}
	return err != nil
}

// endOf is the exit status of a command, as a shell has it, and the same in words.
func endOf(err error) (code int, how string) {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, "ended with exit status 0"
	case !ok:
		return exitFailure, "its end could not be seen: " + err.Error()
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), "ended by signal: " + s.Signal().String()
	}
	return exit.ExitCode(), fmt.Sprintf("ended with exit status %d", exit.ExitCode())
}

// exitWith leaves with a status and says nothing.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}
