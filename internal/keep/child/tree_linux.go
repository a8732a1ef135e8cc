package child

import (
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// maxrssUnit is the unit of rusage's maxrss in bytes.
const maxrssUnit = 1024

// tree finds descendants by process group, and those that left it by /proc while their parents live.
type tree struct {
	kept *kept // nil: we are the parent
}

// waitExit returns when the leader has exited; it is not reaped then. It occupies a thread: the keeper waits for what it has started.
func (t *tree) waitExit(proc *os.Process) {
	for {
		switch err := unix.Waitid(unix.P_PID, proc.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); {
		case err == nil, errors.Is(err, unix.ECHILD):
			return
		case !errors.Is(err, unix.EINTR):
			time.Sleep(retry)
		}
	}
}

// stray is a descendant held by a pidfd, so that its PID cannot be reused.
type stray struct{ pidfd int }

func (s stray) kill() {
	_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
	_ = unix.Close(s.pidfd)
}

// walkLimit bounds the walk, for the case of a fork bomb.
const walkLimit = 4096

// descendants returns the living descendants of pid, none if it has a keeper, which kills them itself. Those whose parent has died
// are not found: they are init's children.
func (t *tree) descendants(pid int) (found []stray) {
	if t.kept != nil {
		return nil
	}
	todo := []int{pid}
	for len(todo) > 0 && len(found) < walkLimit {
		parent := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, c := range Children(parent) {
			fd, err := unix.PidfdOpen(c, 0)
			if err != nil {
				continue
			}
			if parentOf(c) != parent { // the PID was reused before we held it
				_ = unix.Close(fd)
				continue
			}
			found = append(found, stray{fd})
			todo = append(todo, c)
		}
	}
	return found
}

// unread asks the pipe at our writing end, which works even if the reading end is closed.
func unread(f *os.File) (n int, ok bool) {
	err := control(f, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	return n, err == nil
}

// pipe returns a pipe whose ends block and are not in the runtime's poller.
func pipe(name string) (r, w *os.File, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return os.NewFile(uintptr(p[0]), name), os.NewFile(uintptr(p[1]), name), nil
}

// CloseInheritedOnExec sets close-on-exec on every inherited descriptor above 2, so that children do not get it. Call it
// first in main.
func CloseInheritedOnExec() {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err == nil || errors.Is(err, unix.EBADF) {
		return
	}
	entries, err := os.ReadDir("/proc/self/fd") // kernels before 5.11
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
