package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kept is a process whose parent is the keeper.
type kept struct {
	line     *keeperConn
	channel  *os.File // in the runtime's poller; closed after the end
	pidfd    int      // for signals; closed with the channel
	slot     int
	spares   bool
	inherits bool // its group is ours: signals go to it alone
}

// start spawns the process, by the keeper if there is one.
func (p *Process) start(path string, spec Spec, env []string, theirs [3]*os.File) error {
	// A group whose leader is in another PID namespace has no number here, by which a keeper could put the process into it.
	if spec.Inherit && (!mayInherit() || unix.Getpgrp() == 0) {
		return p.startDirect(path, spec, env, theirs)
	}
	slot, ok := takeSlot()
	mine := ownTag()
	if !ok || !mine.valid() {
		return p.startDirect(path, spec, env, theirs)
	}
	o := startRequest{slot: slot, tag: mine.with(slot), path: path, dir: spec.Dir, argv: spec.Argv}
	if spec.KillMode == KillGroup {
		o.tag = mine.with(spared)
	}
	if spec.Inherit {
		o.group = unix.Getpgrp()
	}
	o.env = lastOfEach(append(env, cookieVar+"="+o.tag.cookie()))
	err := p.startKept(o, theirs)
	var number syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &number):
		err = &os.PathError{Op: "fork/exec", Path: path, Err: number}
	default:
		err = p.startDirect(path, spec, o.env, theirs)
	}
	freeSlot(slot)
	return err
}

// startKept makes the keeper start the process, or the next keeper if it dies meanwhile.
func (p *Process) startKept(o startRequest, theirs [3]*os.File) error {
	for range keeperTries {
		l, channel, err := requestStart(o, theirs)
		if err != nil {
			return fmt.Errorf("%w: %v", errNoKeeper, err)
		}
		pid, pidfd, err := l.answer(channel, answerTime)
		if err == nil {
			l.hold()
			p.pid = pid
			p.tree.kept = &kept{line: l, channel: os.NewFile(uintptr(channel), "keeper"), pidfd: pidfd, slot: o.slot,
				spares: o.tag.slot() == spared, inherits: o.group != 0}
			return nil
		}
		closeFds(channel)
		if !errors.Is(err, errNoKeeper) || !l.awaitDeath() {
			return err
		}
		if o.tag.slot() != spared {
			endAllAdopted(candidate{slot: o.slot, leader: noLeader}, stuckTime) // it may have started the process without reporting it
		}
	}
	return errNoKeeper
}

// end waits for the end and returns the status. The process is reaped then, and its descendants are gone.
func (p *Process) end() Status {
	k := p.tree.kept
	if k == nil {
		return p.endDirect()
	}
	m, err := k.report()
	status := m.status()
	if err != nil {
		status = k.lost(p.pid)
		status.Uptime = time.Since(p.started)
	}
	p.mu.Lock()
	p.reaped = true
	_ = k.channel.Close()
	closeFds(k.pidfd)
	p.mu.Unlock()
	freeSlot(k.slot)
	k.line.release()
	reapForgotten(time.Now())
	return status
}

// status is the exit status in a message of the keeper.
func (m message) status() Status {
	s := statusOf(unix.WaitStatus(m.number), m.cpu, m.maxrss)
	s.Uptime = m.lived
	return s
}

// report waits for the keeper's message about the end; an error says that the keeper is gone.
func (k *kept) report() (message, error) {
	rc, err := k.channel.SyscallConn()
	if err != nil {
		return message{}, err
	}
	var m message
	var readErr error
	if err := rc.Read(func(fd uintptr) bool {
		m, readErr = readReport(int(fd))
		return !errors.Is(readErr, unix.EAGAIN)
	}); err != nil {
		return message{}, err
	}
	return m, readErr
}

// readReport reads one message of the keeper, if there is one.
func readReport(channel int) (message, error) {
	var b [messageSize]byte
	n, fds, err := receive(channel, b[:])
	if errors.Is(err, unix.ECONNRESET) {
		// The keeper has closed its end before it read all of ours. That error comes once, before the keeper's messages.
		n, fds, err = receive(channel, b[:])
	}
	closeFds(fds...)
	switch {
	case err != nil:
		return message{}, err
	case n == 0:
		return message{}, io.EOF
	}
	return decodeMessage(b[:n])
}

// signal signals the group by the pidfd, since the keeper may reap the leader at any time.
func (k *kept) signal(sig syscall.Signal) error {
	reach := signalGroup
	if k.inherits {
		reach = signalAlone
	}
	switch err := reach(k.pidfd, sig); {
	case errors.Is(err, unix.ESRCH):
		return os.ErrProcessDone
	case errors.Is(err, unix.EINVAL):
		return k.askKeeper(sig)
	default:
		return err
	}
}

// askKeeper asks the keeper, which reaps the leader and so knows that the PID is valid, to signal the group. For kernels
// before 6.9.
func (k *kept) askKeeper(sig syscall.Signal) error {
	err := control(k.channel, func(fd int) error {
		return send(fd, message{kind: kindSignal, number: int32(sig)}.encode())
	})
	if errors.Is(err, unix.EPIPE) {
		err = os.ErrProcessDone // or the keeper and the process are gone
	}
	return err
}

// signal signals the group, or asks the keeper. The caller has seen that the leader is not reaped.
func (t *tree) signal(pid int, sig syscall.Signal) error {
	if t.kept != nil {
		return t.kept.signal(sig)
	}
	return killGroup(pid, sig)
}
