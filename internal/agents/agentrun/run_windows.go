package agentrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// KeepsTerminals says that an agent can be given a terminal that people join later: not on this system.
const KeepsTerminals = false

// terminal is none: on this system the agent always has pipes.
type terminal struct{ shared *shared }

func (*terminal) input()                  {}
func (*terminal) typed() bool             { return false }
func (*terminal) endInput()               {}
func (*terminal) restore()                {}
func (*terminal) close()                  {}
func (*terminal) openSocket(string) error { return nil }
func (*terminal) endSharing(Exit)         {}

// Attach is not possible on this system.
func Attach(context.Context, AttachOptions) (Leaving, error) {
	return Leaving{}, fmt.Errorf("join the agent's terminal: %w on Windows", errors.ErrUnsupported)
}

func keepTerminal(Options, *exec.Cmd, *seen) (*streams, error) {
	return nil, fmt.Errorf("a terminal for the agent: %w on Windows", errors.ErrUnsupported)
}

func isTerminal(*os.File) bool { return false }

func openTerminal(Options, *exec.Cmd, *seen) (*streams, error) { return nil, errors.ErrUnsupported }

func writeAll(f *os.File, b []byte) error {
	_, err := f.Write(b)
	return err
}

// agent is the agent's process.
type agent struct {
	pid    int
	events chan *Exit
}

// startAgent starts the agent's process. It shares our console, by which the keys' signals reach it.
func startAgent(cmd *exec.Cmd, _ bool) (*agent, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &agent{pid: cmd.Process.Pid, events: make(chan *Exit, 1)}
	go func() {
		_ = cmd.Wait() // how it went is in the state
		a.events <- &Exit{Code: cmd.ProcessState.ExitCode(), At: time.Now()}
	}()
	return a, nil
}

// hear catches our signals, so that they do not end us before the agent, which gets them, too.
func hear() chan os.Signal {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	return heard
}

func (*wrapper) signal(os.Signal) {}

func (*wrapper) agentStopped() {}
