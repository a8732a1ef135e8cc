package child

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxrssUnit is the unit of rusage's maxrss in bytes.
const maxrssUnit = 1

// tree finds descendants by process group, and those that left it by a snapshot of all processes.
type tree struct{}

var mechanism = Mechanism{Name: "process group", InUse: true,
	Detail: "nothing is done when outlive is killed; leftover processes that left their group while their parent died are not found"}

func (t *tree) signal(pid int, sig syscall.Signal) error {
	return unlessEnded(pid, killGroup(pid, sig))
}

// unlessEnded is the error of a signal to the group that pid leads. This system answers EPERM for a group of zombies, where
// others signal nobody and say nothing.
func unlessEnded(pid int, err error) error {
	const zombie = 5 // SZOMB of sys/proc.h
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	if k, lookErr := unix.SysctlKinfoProc("kern.proc.pid", pid); lookErr == nil && k.Proc.P_stat != zombie {
		return err
	}
	return os.ErrProcessDone
}

// stray is a descendant, identified by its PID and start time.
type stray struct {
	pid  int
	born unix.Timeval
}

// kill checks the identity first, since the PID may be reused.
func (s stray) kill() {
	if k, err := unix.SysctlKinfoProc("kern.proc.pid", s.pid); err == nil && k.Proc.P_starttime == s.born {
		_ = unix.Kill(s.pid, unix.SIGKILL)
	}
}

// descendants returns the living descendants of pid. Those whose parent has died are not found: they are launchd's
// children.
func (t *tree) descendants(pid int) []stray {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	byParent := make(map[int][]stray, len(all))
	for i := range all {
		k := &all[i]
		parent := int(k.Eproc.Ppid)
		byParent[parent] = append(byParent[parent], stray{int(k.Proc.P_pid), k.Proc.P_starttime})
	}
	var found []stray
	for todo := []int{pid}; len(todo) > 0; {
		next := byParent[todo[0]]
		delete(byParent, todo[0]) // the kernel's process is its own parent
		todo = todo[1:]
		found = append(found, next...)
		for _, s := range next {
			todo = append(todo, s.pid)
		}
	}
	return found
}

// pipe returns a pipe whose ends block and are not in the runtime's poller.
func pipe(name string) (r, w *os.File, err error) {
	var p [2]int
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(p[:]); err != nil {
		return nil, nil, os.NewSyscallError("pipe", err)
	}
	syscall.CloseOnExec(p[0])
	syscall.CloseOnExec(p[1])
	return os.NewFile(uintptr(p[0]), name), os.NewFile(uintptr(p[1]), name), nil
}

// inheritedLimit is the highest descriptor that CloseInheritedOnExec marks.
const inheritedLimit = 1024

// CloseInheritedOnExec sets close-on-exec on every inherited descriptor above 2, so that children do not get it. Call it
// first in main.
func CloseInheritedOnExec() {
	for fd := 3; fd < inheritedLimit; fd++ {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
			unix.CloseOnExec(fd)
		}
	}
}
