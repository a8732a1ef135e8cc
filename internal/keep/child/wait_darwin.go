package child

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// waitExit returns when the leader has exited; it is not reaped then. It occupies a thread, since a kqueue cannot be in
// the runtime's poller.
func (t *tree) waitExit(proc *os.Process) {
	for {
		kq, err := unix.Kqueue()
		if err != nil {
			time.Sleep(retry) // out of descriptors, which is temporary
			continue
		}
		unix.CloseOnExec(kq)
		waitKqueue(kq, proc.Pid)
		_ = unix.Close(kq)
		return
	}
}

func waitKqueue(kq, pid int) {
	var change, got [1]unix.Kevent_t
	unix.SetKevent(&change[0], pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change[0].Fflags = unix.NOTE_EXIT
	for {
		n, err := unix.Kevent(kq, change[:], got[:], nil)
		if n > 0 && got[0].Flags&unix.EV_ERROR != 0 { // why the change was not made
			err = unix.Errno(got[0].Data)
		}
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ESRCH): // it is a zombie already
			return
		case err != nil:
			time.Sleep(retry)
		case n > 0:
			return
		}
	}
}
