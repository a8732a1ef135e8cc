package child

import (
	"errors"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// is64 is 1 where a pointer has eight bytes.
const is64 = ^uintptr(0) >> 63

// childInfo is the kernel's siginfo_t as waitid fills it in. On MIPS code and errno have changed places: there code
// reads 0, which is none of a death's.
type childInfo struct {
	signo  int32
	_      int32 // errno
	code   int32
	_      [is64]int32
	_      [2]int32 // pid and user
	status int32
	_      [128 - (6+is64)*4]byte
}

// Codes of a [childInfo], from <bits/siginfo-consts.h>.
const (
	childExited = 1
	childKilled = 2
	childDumped = 3
)

// coreFlag is the bit of a wait status that tells of a core file.
const coreFlag = 0x80

// peekExit tells how a dead child of ours ended and what it has used, as the wait that reaps it will, and leaves it
// there: its pid, its group's number and its pidfd stay its own. ok is false if that cannot be told yet, as of one that a
// debugger has not let go.
func peekExit(pid int) (status unix.WaitStatus, usage unix.Rusage, ok bool) {
	var info childInfo
	for {
		err := unix.Waitid(unix.P_PID, pid, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, &usage)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, usage, false
		}
	}
	if info.signo == 0 {
		return 0, usage, false
	}
	switch info.code {
	case childExited:
		return unix.WaitStatus(info.status << 8), usage, true
	case childKilled:
		return unix.WaitStatus(info.status), usage, true
	case childDumped:
		return unix.WaitStatus(info.status | coreFlag), usage, true
	}
	return 0, usage, false
}

// status is the end that a message of the keeper tells of.
func (m message) status() Status {
	s := statusOf(unix.WaitStatus(m.number), m.cpu, m.maxrss)
	s.Uptime = m.lived
	return s
}

// askForDeath asks the keeper to tell of the leader's death at once, if somebody here wants to know, or no longer. The
// caller holds mu.
//
// It has to be asked because outlive and its keeper may be of different versions after an upgrade in place, in which
// the keeper stays. A keeper that does not know the question passes over it and tells of the exit only, as ever. An outlive
// that does not know the answer would take it for the exit; it never asks, and whoever hands over to it, which may be
// an older version, takes the question back first (Hold). Should the leader die in that very moment, the older version
// takes its descendants for gone that the keeper is just ending, that one time.
func (p *Process) askForDeath(want bool) {
	k := p.tree.kept
	if k == nil || p.onDeath == nil {
		return
	}
	m := message{kind: kindAsk}
	if want {
		m.number = 1
	}
	_ = control(k.channel, func(fd int) error { return send(fd, m.encode()) }) // without it the exit is told
}

// deserted reports whether nobody holds the reading end of the process's stdin, so that what is in it stays there.
func (p *Process) deserted() bool {
	var fds [1]unix.PollFd
	err := control(p.ours[0], func(fd int) error {
		fds[0].Fd = int32(fd)
		_, err := unix.Poll(fds[:], 0)
		return err
	})
	return err == nil && fds[0].Revents&unix.POLLERR != 0
}

// HearDeath waits until the keeper tells that the leader is dead, no longer than limit, and returns how it ended: what
// [Spec.OnDeath] would be told, which is not called then. It is for whoever has reason to think that the process is
// dying, and saves the time until another goroutine, and then this one, gets a processor. ok is false if nothing was
// told, or if it is OnDeath's turn already.
func (p *Process) HearDeath(limit time.Duration) (status Status, ok bool) {
	k := p.tree.kept
	if k == nil || p.onDeath == nil || !p.silent() {
		return Status{}, false
	}
	if control(k.channel, func(fd int) error { return awaitReport(fd, limit) }) != nil {
		return Status{}, false
	}
	// Not within the use of the channel: whoever closes that waits for its users, with mu held.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reported || p.reaped {
		return Status{}, false
	}
	var m message
	if control(k.channel, func(fd int) (err error) { m, err = readReport(fd); return err }) != nil {
		return Status{}, false // it is met again by whoever reads next
	}
	p.reported, k.unheard = true, &m
	if m.kind != kindDied || !p.deserted() {
		return Status{}, false
	}
	k.toldOf = true
	return m.status(), true
}

// awaitReport waits until there is something to read, no longer than limit.
func awaitReport(channel int, limit time.Duration) error {
	timeout := unix.NsecToTimespec(int64(limit))
	n, err := unix.Ppoll([]unix.PollFd{{Fd: int32(channel), Events: unix.POLLIN}}, &timeout, nil)
	if err == nil && n == 0 {
		return os.ErrDeadlineExceeded
	}
	return err
}

// silent reports whether nothing that the keeper tells of the end has been read.
func (p *Process) silent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.reported
}
