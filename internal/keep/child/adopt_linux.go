package child

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lost sees a process to its end whose keeper was killed. The kernel has killed the leader with it, by Pdeathsig, and
// made it and all orphans our children: outlive is a subreaper as well.
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
		endAllAdopted(dying)
	}
	var ws unix.WaitStatus
	var usage unix.Rusage
	for {
		switch _, err := unix.Wait4(pid, &ws, 0, &usage); {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return Status{Code: 255} // that it is gone is sure, how it went is not
		}
		return statusOf(ws, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()), int64(usage.Maxrss)*maxrssUnit)
	}
}

// nobody is the leader of a lost process that nobody knows the number of. No process has it.
const nobody = -1

// endAllAdopted returns when no descendant of one lost process is left among our children. Two looks must agree: the kernel's
// list of children may lack some while others die.
func endAllAdopted(dying candidate) {
	for began := time.Now(); endAdopted(dying)+endAdopted(dying) > 0; {
		time.Sleep(pause(time.Since(began)))
	}
}

// endAdopted kills and reaps the descendants of one lost process among our children and returns how many there were.
// Children that we have started ourselves, or that nothing identifies, are left alone.
func endAdopted(dying candidate) (found int) {
	mine := ownTag()
	for _, pid := range children(os.Getpid()) {
		if pid == dying.leader {
			continue
		}
		k := lookAt(pid, mine)
		if slot, known := owner(k, mine, []candidate{dying}); !known || slot != dying.slot {
			continue
		}
		found++
		if got, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == 0 {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return found
}

// forgottenAfter is how long a dead child of ours must have gone unclaimed to be nobody's. Whoever starts a process here
// waits for it at once.
const forgottenAfter = 30 * time.Second

// forgotten are dead children seen, by pid, and when first. As a subreaper outlive also gets the orphans of whatever
// else it has started, such as a command that a notification runs.
var forgotten struct {
	mu   sync.Mutex
	seen map[int]time.Time
}

// reapForgotten reaps dead children that nobody has waited for in a long time. It costs one system call when there is
// none, and is called when a process has ended.
func reapForgotten(now time.Time) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	if err != nil || info.Signo == 0 {
		return
	}
	var dead []int
	for _, pid := range children(os.Getpid()) {
		if f := statFields(pid); len(f) > 0 && f[0] == "Z" {
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

// unclaimed tells which of the dead have been so for too long, and when each of the others was first seen.
func unclaimed(seen map[int]time.Time, dead []int, now time.Time) (waiting map[int]time.Time, reap []int) {
	waiting = make(map[int]time.Time, len(dead))
	for _, pid := range dead {
		first, known := seen[pid]
		switch {
		case !known:
			waiting[pid] = now
		case now.Sub(first) >= forgottenAfter:
			reap = append(reap, pid)
		default:
			waiting[pid] = first
		}
	}
	slices.Sort(reap)
	return waiting, reap
}
