//go:build unix

package child

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

func (t *tree) attributes(inherit bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !inherit}
}

func (t *tree) adopt(*os.Process) {}

func (t *tree) close() {}

// killRest kills the rest of the group. The leader is a zombie, so the group's number is valid.
func (t *tree) killRest(pid int) {
	_ = killGroup(pid, syscall.SIGKILL)
}

func (p *Process) kill() error {
	strays := p.tree.descendants(p.pid)
	err := p.signal(syscall.SIGKILL)
	for _, s := range strays {
		s.kill()
	}
	return err
}

// Continue sends SIGCONT to the process group that pid leads. It returns an error that wraps [os.ErrProcessDone] when
// there is no such group. The leader must not have been reaped.
func Continue(pid int) error {
	err := os.ErrInvalid // the kernel would signal every process, or us
	if pid > 1 {
		err = new(tree).signal(pid, syscall.SIGCONT)
	}
	if err != nil {
		return fmt.Errorf("continue process group %d: %w", pid, err)
	}
	return nil
}

func (p *Process) terminate() error {
	err := p.signal(syscall.SIGTERM)
	if contErr := p.signal(syscall.SIGCONT); err == nil && !errors.Is(contErr, os.ErrProcessDone) {
		err = contErr
	}
	return err
}

// signal signals the group, or the process alone if its group is ours. The caller holds mu and has seen that the leader
// is not reaped, so that its PID is valid.
func (p *Process) signal(sig syscall.Signal) error {
	if p.inherit && p.proc != nil {
		return p.proc.Signal(sig)
	}
	return p.tree.signal(p.pid, sig)
}

func killGroup(pgid int, sig syscall.Signal) error {
	err := syscall.Kill(-pgid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// status translates the result of the wait.
func (p *Process) status(state *os.ProcessState, err error) Status {
	if err != nil {
		// Another waiter has reaped our child: its exit status is lost.
		return Status{Code: 255}
	}
	cpu := state.UserTime() + state.SystemTime()
	ws, ok := state.Sys().(syscall.WaitStatus)
	ru, ok2 := state.SysUsage().(*syscall.Rusage)
	if !ok || !ok2 {
		return Status{Code: state.ExitCode(), CPU: cpu}
	}
	return statusOf(ws, cpu, int64(ru.Maxrss)*maxrssUnit)
}

// waitStatus is what the kernel packs into a number: the syscall package's type or that of x/sys.
type waitStatus interface {
	Signaled() bool
	Signal() syscall.Signal
	ExitStatus() int
}

func statusOf(ws waitStatus, cpu time.Duration, maxrss int64) Status {
	s := Status{Code: ws.ExitStatus(), CPU: cpu, MaxRSS: maxrss}
	if ws.Signaled() {
		s.Signalled = true
		s.Signal = ws.Signal().String()
		s.Code = 128 + int(ws.Signal())
	}
	return s
}

// retry is the pause after a failed wait.
const retry = 10 * time.Millisecond

// Supports says why a kill mode is not possible on this system.
func Supports(KillMode) error { return nil }
