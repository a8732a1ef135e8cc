package child

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lost waits for the end of a process whose keeper was killed. The kernel has killed the leader with the keeper, by
// Pdeathsig, and made it and all orphans our children, since outlive is a subreaper, too.
func (k *kept) lost(pid int) Status {
	k.line.kill()
	if k.inherits || errors.Is(signalGroup(k.pidfd, unix.SIGKILL), unix.EINVAL) {
		_ = signalAlone(k.pidfd, unix.SIGKILL)
	}
	for over, err := false, error(nil); err == nil && !over; over, err = ended(k.pidfd) {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(k.pidfd), Events: unix.POLLIN}}, -1)
	}
	dying := candidate{slot: k.slot, leader: pid, spares: k.spares}
	if !k.spares {
		endAllAdopted(dying, stuckTime)
	}
	var ws unix.WaitStatus
	var usage unix.Rusage
	for {
		switch _, err := unix.Wait4(pid, &ws, 0, &usage); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return Status{Code: 255} // its exit status is lost
		}
		return statusOf(ws, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()), int64(usage.Maxrss)*maxrssUnit)
	}
}

// Of a lost process, or of all of them.
const (
	noLeader = -1 // its PID is not known
	anySlot  = -1
)

// endAllAdopted returns when no descendant of a lost process is left among our children, or after so long: what is stuck in the
// kernel stays. Two scans must agree: the kernel's list of children may be incomplete while others die.
func endAllAdopted(dying candidate, long time.Duration) {
	for began := time.Now(); endAdopted(dying)+endAdopted(dying) > 0 && time.Since(began) < long; {
		time.Sleep(pause(time.Since(began)))
	}
}

// endAdopted kills and reaps the descendants of a lost process among our children and returns how many there were.
// Children that we started ourselves, or that cannot be identified, are left alone.
func endAdopted(dying candidate) (found int) {
	mine := ownTag()
	for _, pid := range Children(os.Getpid()) {
		if pid == dying.leader {
			continue
		}
		k := lookAt(pid, mine)
		if slot, known := owner(k, mine, []candidate{dying}); !known || slot == spared || dying.slot != anySlot && slot != dying.slot {
			continue
		}
		found++
		if got, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return found
}

// forgottenAfter is how long a dead child must be unreaped before we reap it. Code that starts a process here waits for
// it at once.
const forgottenAfter = 30 * time.Second

// forgotten are dead children with the time they were first seen, by pid. As a subreaper outlive also gets the orphans
// of other commands, such as one that a notification runs.
var forgotten struct {
	mu   sync.Mutex
	seen map[int]time.Time
}

// reapForgotten reaps children that were dead for long without being waited for. Without any it costs one system call.
// It is called when a process has ended.
func reapForgotten(now time.Time) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	if err != nil || info.Signo == 0 {
		return
	}
	var dead []int
	r := newProcReader()
	for _, pid := range Children(os.Getpid()) {
		if s, err := r.stat(pid); err == nil && s.state == 'Z' {
			dead = append(dead, pid)
		}
	}
	forgotten.mu.Lock()
	defer forgotten.mu.Unlock()
	var reap []int
	forgotten.seen, reap = unclaimed(forgotten.seen, dead, now)
	for _, pid := range reap {
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

// unclaimed returns the children that were dead for too long, and when each of the others was first seen.
func unclaimed(seen map[int]time.Time, dead []int, now time.Time) (waiting map[int]time.Time, reap []int) {
	waiting = make(map[int]time.Time, len(dead))
	for _, pid := range dead {
		first, known := seen[pid]
		if !known {
			first = now
		}
		if now.Sub(first) >= forgottenAfter {
			reap = append(reap, pid)
		} else {
			waiting[pid] = first
		}
	}
	slices.Sort(reap)
	return waiting, reap
}
