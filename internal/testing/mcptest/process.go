package mcptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Process is a command with a [Client] on its stdin and stdout.
type Process struct {
	*Client
	cmd    *exec.Cmd
	exited chan struct{}
	// stderr is our end of the process's stderr; copied is closed when all of it was copied.
	stderr *os.File
	copied chan struct{}
}

// stderrGrace is how long ExitCode waits for the rest of stderr, which a grandchild may hold open.
const stderrGrace = time.Second

// Spawn starts argv with env added to this process's environment. Its stderr is copied to stderr (nil: dropped). The
// caller ends it with [Process.Stop] or [Process.Close].
func Spawn(argv, env []string, stderr io.Writer) (*Process, error) {
	if len(argv) == 0 {
		return nil, errors.New("start: empty command")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	rw, errR, theirs, err := processPipes(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	err = cmd.Start()
	for _, f := range theirs {
		_ = f.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], errors.Join(err, rw.Close(), errR.Close()))
	}
	if stderr == nil {
		stderr = io.Discard
	}
	p := &Process{Client: NewClient(rw), cmd: cmd, exited: make(chan struct{}), stderr: errR, copied: make(chan struct{})}
	go func() {
		defer close(p.copied)
		_, _ = io.Copy(stderr, errR)
	}()
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // cmd keeps the state
	}()
	return p, nil
}

// processPipes makes our own pipes: those of exec are closed by its Wait, so that unread data would be lost. theirs
// are the child's ends, to be closed here once it runs.
func processPipes(cmd *exec.Cmd) (rw *ends, stderr *os.File, theirs []*os.File, err error) {
	var f [6]*os.File
	for i := 0; i < len(f); i += 2 {
		if f[i], f[i+1], err = os.Pipe(); err != nil {
			for _, open := range f[:i] {
				_ = open.Close()
			}
			return nil, nil, nil, err
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = f[0], f[3], f[5]
	return &ends{r: f[2], w: f[1]}, f[4], []*os.File{f[0], f[3], f[5]}, nil
}

// ends joins two one-way streams to one two-way stream.
type ends struct {
	r      io.ReadCloser
	w      io.WriteCloser
	closeW sync.Once
	wErr   error
}

// Join makes one stream of a read side and a write side; its Close closes both, its CloseWrite the second.
func Join(r io.ReadCloser, w io.WriteCloser) io.ReadWriteCloser { return &ends{r: r, w: w} }

// Read reads from the read side.
func (e *ends) Read(b []byte) (int, error) { return e.r.Read(b) }

// Write writes to the write side.
func (e *ends) Write(b []byte) (int, error) { return e.w.Write(b) }

// CloseWrite closes the write side once.
func (e *ends) CloseWrite() error {
	e.closeW.Do(func() { e.wErr = e.w.Close() })
	return e.wErr
}

// Close closes both sides.
func (e *ends) Close() error { return errors.Join(e.CloseWrite(), e.r.Close()) }

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill sends SIGKILL to the process alone, not to its children.
func (p *Process) Kill() error { return p.cmd.Process.Kill() }

// Signal sends sig to the process alone.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Exited is closed when the process has ended and was reaped.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitCode waits for the end and returns the exit status: -1 if a signal ended it. The process's stderr has been
// copied by then.
func (p *Process) ExitCode(ctx context.Context) (int, error) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for process %d: %w", p.PID(), ctx.Err())
	}
	grace := time.NewTimer(stderrGrace)
	defer grace.Stop()
	select {
	case <-p.copied:
	case <-grace.C:
	case <-ctx.Done():
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// Stop ends the process as clients do: it closes stdin, reads the output to its end, waits for the exit and returns
// the exit status. When ctx is done first, the process is killed.
func (p *Process) Stop(ctx context.Context) (int, error) {
	_ = p.CloseWrite()
	code, err := p.ExitCode(ctx)
	if err != nil {
		_ = p.Close()
		return 0, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		err = fmt.Errorf("read the rest of process %d: %w", p.PID(), ctx.Err())
	}
	_ = p.Close()
	return code, err
}

// Close kills the process if it still runs, and waits for it and for all goroutines.
func (p *Process) Close() error {
	_ = p.cmd.Process.Kill()
	<-p.exited
	err := p.Client.Close()
	_ = p.stderr.Close()
	<-p.copied
	return err
}
