package process

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Times of a stop.
const (
	killTime = 2 * time.Second       // in which SIGKILL must have worked
	scanWait = 50 * time.Millisecond // between two looks at all processes
)

// Stop ends everything of a target: terminate, wait, kill. It returns nil only when it has seen that nothing is left,
// otherwise a [StopError]. Every signal goes through a pidfd that was opened before the process was examined, if the system has
// any, so that no other process with a reused PID is hit.
func (System) Stop(ctx context.Context, t Target) error {
	h := &termination{target: t, above: ancestors(), asked: map[int]uint64{}, known: map[int]uint64{}}
	for _, l := range t.Leaders {
		if h.above[l.PID] && mayBe(l) {
			return &StopError{l.PID, errOurselves}
		}
	}
	for _, phase := range []struct {
		signal unix.Signal
		time   time.Duration
	}{{unix.SIGTERM, t.grace()}, {unix.SIGKILL, killTime}} {
		end := time.Now().Add(phase.time)
		for {
			left, err := h.strike(phase.signal)
			if err != nil || len(left) == 0 {
				return err
			}
			if !time.Now().Before(end) {
				break
			}
			h.wait(left)
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	left, err := h.strike(0)
	if err != nil || len(left) == 0 {
		return err
	}
	return &StopError{left[0].pid, errStuck}
}

// mayBe reports whether the process that has the number of an identity now may be the one that is meant. One that cannot be looked at may be.
func mayBe(id Identity) bool {
	s, err := readStat(id.PID)
	return id.Boot == bootID() && (err != nil || s.start == id.Start)
}

// termination is one stop.
type termination struct {
	target Target
	above  map[int]bool   // us and our ancestors: never touched
	asked  map[int]uint64 // start times of those that have had SIGTERM: once is enough
	known  map[int]uint64 // start times of all members that were seen: one that is ending has no environment any more, and may have no parent
}

// strike signals every member and returns those that were alive. Signal 0 only looks.
func (h *termination) strike(sig unix.Signal) ([]procStat, error) {
	members := h.members()
	for _, m := range members {
		if sig == unix.SIGTERM && h.asked[m.pid] == m.start {
			continue
		}
		if sig == unix.SIGTERM && m.pid == h.target.Wrapper.PID && m.start == h.target.Wrapper.Start {
			_ = signalOne(m, unix.SIGCONT) // a stopped one would not end
			h.asked[m.pid] = m.start
			continue
		}
		err := signalOne(m, sig)
		switch {
		case errors.Is(err, unix.EPERM):
			return nil, &StopError{m.pid, os.ErrPermission} // EPERM is not death
		case err == nil && sig == unix.SIGTERM:
			h.asked[m.pid] = m.start
			_ = signalOne(m, unix.SIGCONT) // a stopped process would not handle it
		}
	}
	return members, nil
}

// signalOne signals a process if it is still the one that was seen.
func signalOne(m procStat, sig unix.Signal) error {
	fd, err := unix.PidfdOpen(m.pid, 0)
	refused := errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) // by a kernel before 5.3, or by a sandbox
	switch {
	case err == nil:
		defer unix.Close(fd)
	case !refused:
		return err
	}
	if s, err := readStat(m.pid); err != nil || s.start != m.start {
		return unix.ESRCH
	}
	if refused {
		return unix.Kill(m.pid, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// wait returns when one of those left has ended, or after scanWait.
func (h *termination) wait(left []procStat) {
	var fds []unix.PollFd
	for _, m := range left {
		if fd, err := unix.PidfdOpen(m.pid, 0); err == nil {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(int(fd.Fd))
		}
	}()
	_, _ = unix.Poll(fds, int(scanWait.Milliseconds())) // after an interruption all are examined again
}

// members are the living of the target, leaders first.
func (h *termination) members() []procStat {
	all := allProcesses()
	chosen := map[int]bool{}
	var found []procStat
	choose := func(s procStat) {
		if !chosen[s.pid] && !h.above[s.pid] {
			chosen[s.pid] = true
			h.known[s.pid] = s.start
			found = append(found, s)
		}
	}
	for _, l := range h.target.Leaders {
		h.ofLeader(l, all, choose)
	}
	for _, s := range all {
		if start, is := h.known[s.pid]; is && start == s.start || !chosen[s.pid] && isOfRun(s.pid, h.target.Runs) && !vendorDaemon(s.pid) {
			choose(s)
		}
	}
	// Children of a chosen process belong to it. A child may have a smaller number than its parent.
	for grown := true; grown; {
		grown = false
		for _, s := range all {
			if chosen[s.parent] && !chosen[s.pid] && !h.above[s.pid] && !vendorDaemon(s.pid) {
				choose(s)
				grown = true
			}
		}
	}
	return found
}

// ofLeader chooses a leader, if it is still the same process, and its session and group. The kernel does not reuse the
// number of a session or group that still has members.
func (h *termination) ofLeader(l Identity, all []procStat, choose func(procStat)) {
	if l.PID <= 1 || l.Boot != bootID() {
		return
	}
	leads, alive := true, false
	for _, s := range all {
		if s.pid == l.PID {
			alive = s.start == l.Start
			leads = alive && (s.session == l.PID || s.group == l.PID)
			if alive {
				choose(s)
			}
		}
	}
	if !leads {
		return
	}
	for _, s := range all {
		if s.session != l.PID && s.group != l.PID {
			continue
		}
		if alive || time.Now().Add(-ageOf(s)).Before(h.target.LeftBefore) {
			if !vendorDaemon(s.pid) {
				choose(s)
			}
		}
	}
}

// ancestors are we and the processes above us.
func ancestors() map[int]bool {
	above := map[int]bool{os.Getpid(): true, 1: true}
	for pid := os.Getppid(); pid > 1 && !above[pid]; {
		above[pid] = true
		s, err := readStat(pid)
		if err != nil {
			break
		}
		pid = s.parent
	}
	return above
}

// vendorDaemons are words in the command lines of daemons that serve every session of an agent, not only ours.
var vendorDaemons = [][]byte{[]byte("--managed-daemon"), []byte("pid-update-loop")}

func vendorDaemon(pid int) bool {
	line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return false
	}
	for _, word := range vendorDaemons {
		if bytes.Contains(line, word) {
			return true
		}
	}
	return false
}
