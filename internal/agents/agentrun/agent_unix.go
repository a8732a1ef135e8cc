//go:build unix

package agentrun

import (
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// agent is the agent's process.
type agent struct {
	pid    int
	group  bool       // it leads a process group
	events chan *Exit // nil: it was stopped (SIGSTOP and its like)

	mu   sync.Mutex
	gone bool // it was reaped: its PID may be reused
	ours bool // we cause its next stop
}

// startAgent starts the agent's process, in a group of its own if it is to be alone.
func startAgent(cmd *exec.Cmd, alone bool) (*agent, error) {
	if alone && cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &agent{pid: cmd.Process.Pid, group: alone, events: make(chan *Exit, 1)}
	_ = cmd.Process.Release() // we wait for it ourselves, to see its stops, too
	go a.wait()
	return a, nil
}

// wait reports every stop of the process, and its end.
func (a *agent) wait() {
	for {
		var status unix.WaitStatus
		pid, err := a.take(&status)
		switch {
		case err == unix.EINTR, err == nil && pid == 0:
		case err != nil: // another waiter has reaped it: its exit status is lost
			a.mu.Lock()
			a.gone = true
			a.mu.Unlock()
			a.events <- &Exit{Code: 255, At: time.Now()}
			return
		case status.Stopped():
			a.events <- nil
		case status.Exited():
			a.events <- &Exit{Code: status.ExitStatus(), At: time.Now()}
			return
		case status.Signaled():
			a.events <- &Exit{Code: 128 + int(status.Signal()), Signal: status.Signal().String(), At: time.Now()}
			return
		}
	}
}

// taken processes a result of wait4 while signals are blocked. It returns 0 when there is nothing to report.
func (a *agent) taken(pid int, status unix.WaitStatus) int {
	switch {
	case pid != a.pid:
		return 0
	case !status.Stopped():
		a.gone = true
	case a.ours:
		a.ours = false
		return 0
	}
	return pid
}

// stop stops the agent, which is not an event then.
func (a *agent) stop() {
	a.mu.Lock()
	a.ours = true
	a.mu.Unlock()
	a.signal(unix.SIGSTOP)
}

func (a *agent) goOn() {
	a.mu.Lock()
	a.ours = false
	a.mu.Unlock()
	a.signal(unix.SIGCONT)
}

// signal sends a signal to the agent's group, or to the agent alone when its group is ours.
func (a *agent) signal(sig syscall.Signal) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return
	}
	to := a.pid
	if a.group {
		to = -a.pid
	}
	_ = unix.Kill(to, sig) // permission denied: the agent has changed its user
}
