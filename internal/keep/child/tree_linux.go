package child

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxrssUnit is the unit of rusage's maxrss in bytes.
const maxrssUnit = 1024

// tree finds descendants by process group, and those that left it by /proc while their parents live.
type tree struct {
	pidfd int   // -1: not available
	kept  *kept // not nil: the keeper is the parent, and the rest is unused
}

func (t *tree) attributes(inherit bool) *syscall.SysProcAttr {
	t.pidfd = -1
	return &syscall.SysProcAttr{PidFD: &t.pidfd, Setsid: !inherit}
}

func (t *tree) adopt(*os.Process) {}

func (t *tree) close() {}

// killRest kills the rest of the group. The leader is a zombie, so the group's number is valid.
func (t *tree) killRest(pid int) {
	_ = killGroup(pid, unix.SIGKILL)
}

func (p *Process) kill() error {
	if p.tree.kept != nil {
		return p.signal(unix.SIGKILL) // the keeper sees the leader's end and kills the rest
	}
	strays := descendants(p.pid)
	err := p.signal(unix.SIGKILL)
	for _, s := range strays {
		s.kill()
	}
	return err
}

// stray is a descendant held by a pidfd, so that its PID cannot be reused.
type stray struct{ pidfd int }

func (s stray) kill() {
	_ = unix.PidfdSendSignal(s.pidfd, unix.SIGKILL, nil, 0)
	_ = unix.Close(s.pidfd)
}

// walkLimit bounds the walk, for the case of a fork bomb.
const walkLimit = 4096

// descendants returns the living descendants of pid. Those whose parent has died are not found: they are init's
// children.
func descendants(pid int) []stray {
	var found []stray
	todo := []int{pid}
	for len(todo) > 0 && len(found) < walkLimit {
		parent := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, c := range children(parent) {
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

// children returns the children of all threads of pid. It may be incomplete while processes fork and die.
func children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var all []int
	for _, t := range tasks {
		if tid, err := strconv.Atoi(t.Name()); err == nil {
			all = threadChildren(all, pid, tid)
		}
	}
	return all
}

// threadChildren appends the children of one thread of pid to list.
func threadChildren(list []int, pid, tid int) []int {
	path := "/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(tid) + "/children"
	for _, f := range bytes.Fields(readProc(path, make([]byte, 4096))) {
		if n, err := strconv.Atoi(string(f)); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// readProc reads a file of /proc into buf, or a larger buffer, without the runtime's poller, which costs four more
// system calls for each file. nil: not readable.
func readProc(path string, buf []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for at := 0; ; {
		n, err := unix.Read(fd, buf[at:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil
		case n == 0:
			return buf[:at]
		}
		if at += max(n, 0); at == len(buf) {
			buf = append(buf, make([]byte, len(buf))...)
		}
	}
}

// parentOf is the parent's pid; -1 when there is no such process.
func parentOf(pid int) int {
	fields := statFields(pid)
	if len(fields) < 2 {
		return -1
	}
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		return -1
	}
	return n
}

// statFields are the fields of /proc/PID/stat after the command, whose text may contain anything: state, parent, group,
// session and so on; nil if there is no such process.
func statFields(pid int) []string {
	s := string(readProc("/proc/"+strconv.Itoa(pid)+"/stat", make([]byte, 1024)))
	return strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
}

// unread asks the pipe at our writing end, which works even if the reading end is closed.
func unread(f *os.File) (int, bool) {
	rc, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	var n int
	var ioErr error
	if err := rc.Control(func(fd uintptr) { n, ioErr = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil || ioErr != nil {
		return 0, false
	}
	return n, true
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
