package child

import (
	"errors"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// server is one server of the keeper: running; exited, while its descendants are being killed; then reaped and reported.
// Its PID cannot be reused before that.
type server struct {
	slot     int
	pid      int
	pidfd    int
	channel  int // to outlive; -1 when that end is closed
	spares   bool
	inherits bool // its group is outlive's own
	born     time.Time

	exited bool
	ended  time.Time // when the exit was seen
}

func (w *server) claim() candidate { return candidate{slot: w.slot, leader: w.pid, spares: w.spares} }

// signal signals the group, or the leader alone if its group is outlive's. The leader is not reaped, so its PID is
// valid.
func (w *server) signal(sig syscall.Signal) {
	to := -w.pid
	if w.inherits {
		to = w.pid
	}
	_ = unix.Kill(to, sig)
}

// exit notes that the leader has exited and kills what is left of its group.
func (w *server) exit() {
	w.exited, w.ended = true, time.Now()
	w.signal(unix.SIGKILL)
}

// listen reads all messages of outlive on the channel; the last one counts.
func (w *server) listen() {
	for {
		var b [messageSize]byte
		n, fds, err := receive(w.channel, b[:])
		closeFds(fds...)
		if errors.Is(err, unix.EAGAIN) {
			return
		}
		if errors.Is(err, unix.ECONNRESET) {
			continue // outlive has closed its end before it read our answer: what it said comes after that
		}
		if err != nil || n == 0 {
			closeFds(w.channel)
			w.channel = -1
			return
		}
		m, err := decodeMessage(b[:n])
		if err == nil && m.kind == kindSignal {
			w.signal(syscall.Signal(m.number))
		}
	}
}

// sweep kills the descendants of servers that have exited, and reports those without any left. Two scans must agree: the
// kernel's list of children may be incomplete while others die.
func (k *keeper) sweep() {
	kept := k.servers[:0:0]
	for _, w := range k.servers {
		if !w.exited {
			kept = append(kept, w)
			continue
		}
		if k.endDescendants(w)+k.endDescendants(w) > 0 {
			kept = append(kept, w)
			continue
		}
		w.report()
	}
	k.servers = kept
}

// endDescendants kills the descendants of w that have become our children and returns how many there were. Their own
// children become ours after their death. One of another user, such as behind sudo, cannot be killed, and one that is stuck
// in the kernel does not end: it stays, and nobody waits for it.
func (k *keeper) endDescendants(w *server) (found int) {
	if w.spares {
		return 0
	}
	all, tooLong := k.candidates(), time.Since(w.ended) > stuckTime
	k.eachOrphan(func(pid int) {
		switch {
		case !mustDie(lookAt(pid, k.self), k.self, w.claim(), all, k.spares):
		case k.kill(pid, unix.SIGKILL) == unix.EPERM || k.stuck[pid]:
		case tooLong:
			k.stuck[pid] = true
		default:
			found++
		}
	})
	return found
}

// report reaps the leader, tells outlive how it ended and forgets the process.
func (w *server) report() {
	var status unix.WaitStatus
	var usage unix.Rusage
	for {
		if _, err := unix.Wait4(w.pid, &status, 0, &usage); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if w.channel >= 0 {
		w.tell(status, usage)
	}
	closeFds(w.channel, w.pidfd)
}

// tell reports the leader's end to outlive.
func (w *server) tell(status unix.WaitStatus, usage unix.Rusage) {
	_ = send(w.channel, message{kind: kindExited, number: int32(status), lived: w.ended.Sub(w.born),
		cpu:    time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		maxrss: int64(usage.Maxrss) * maxrssUnit}.encode())
}
