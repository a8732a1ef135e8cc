package process

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// zombie is SZOMB of sys/proc.h.
const zombie = 5

// Look describes the living process of a PID. The error wraps os.ErrProcessDone when there is none, or only a zombie.
func (System) Look(pid int) (Process, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if pid <= 0 || err != nil || int(k.Proc.P_pid) != pid || k.Proc.P_stat == zombie {
		return Process{}, fmt.Errorf("look at process %d: %w", pid, os.ErrProcessDone)
	}
	p := described(k)
	p.User = strconv.Itoa(int(k.Eproc.Ucred.Uid))
	return p, nil
}

func identity(k *unix.KinfoProc) Identity {
	return Identity{PID: int(k.Proc.P_pid), Start: uint64(k.Proc.P_starttime.Nano())}
}

// send signals a process if it is still the same one.
func send(id Identity, sig unix.Signal) error {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", id.PID)
	if err != nil || identity(k) != id {
		return os.ErrProcessDone
	}
	return sent(id, unix.Kill(id.PID, sig))
}
