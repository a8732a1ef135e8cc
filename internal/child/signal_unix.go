//go:build unix

package child

import (
	"errors"
	"os"
	"syscall"
	"time"
)

func (p *Process) terminate() error {
	err := p.signal(syscall.SIGTERM)
	if contErr := p.signal(syscall.SIGCONT); err == nil && !errors.Is(contErr, os.ErrProcessDone) {
		err = contErr
	}
	return err
}

// signal reaches the group, or the process alone if its group is ours. The caller holds mu and has seen that the
// leader is not reaped, so neither number can be a stranger's.
func (p *Process) signal(sig syscall.Signal) error {
	if p.inherit {
		return p.proc.Signal(sig)
	}
	return killGroup(p.pid, sig)
}

func killGroup(pgid int, sig syscall.Signal) error {
	err := syscall.Kill(-pgid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// status reads what the kernel told at the reaping.
func (p *Process) status(state *os.ProcessState, err error) Status {
	if err != nil {
		// Somebody else reaped our child. That it is gone is sure, how it went is not.
		return Status{Code: 255}
	}
	s := Status{Code: state.ExitCode(), CPU: state.UserTime() + state.SystemTime()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		s.Signalled, s.Core = true, ws.CoreDump()
		s.Signal = ws.Signal().String()
		s.Code = 128 + int(ws.Signal())
	}
	if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
		s.MaxRSS = int64(ru.Maxrss) * maxrssUnit
	}
	return s
}

// retry is how long to wait before asking again when the system refuses to wait for us.
const retry = 10 * time.Millisecond
