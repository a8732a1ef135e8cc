//go:build unix

package process

import (
	"errors"
	"os"
	"syscall"
)

// What a stop can do on these systems.
const (
	canAsk            = true
	orphansKeepParent = false // the kernel gives them another one
	goOn              = syscall.SIGCONT
)

// Interrupt interrupts a process (SIGINT). The error wraps os.ErrProcessDone when it is gone.
func (System) Interrupt(id Identity) error {
	if id.Boot != BootID() {
		return os.ErrProcessDone
	}
	return send(id, syscall.SIGINT)
}

// sent is what [send] returns for what the system has answered.
func sent(id Identity, err error) error {
	switch {
	case errors.Is(err, syscall.EPERM):
		return &StopError{id.PID, os.ErrPermission} // EPERM is not death
	case errors.Is(err, syscall.ESRCH):
		return os.ErrProcessDone
	}
	return err
}

// detached puts an orchestrator into a session of its own: no signal for us reaches it, and all of it can be found.
var detached = &syscall.SysProcAttr{Setsid: true}
