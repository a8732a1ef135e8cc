package child

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waitExit returns when the leader has exited; it is not reaped then.
func (t *tree) waitExit(proc *os.Process) {
	if t.pidfd >= 0 && waitPidfd(t.pidfd) == nil {
		return
	}
	waitThread(proc.Pid)
}

// waitPidfd waits in the runtime's poller, so that no thread is occupied. It closes fd.
func waitPidfd(fd int) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return err
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return rc.Read(func(fd uintptr) bool {
		over, err := ended(int(fd))
		return err == nil && over
	})
}

// waitThread occupies a thread, for kernels and sandboxes without pidfds.
func waitThread(pid int) {
	for {
		switch err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); {
		case err == nil, errors.Is(err, unix.ECHILD):
			return
		case !errors.Is(err, unix.EINTR):
			time.Sleep(retry)
		}
	}
}
