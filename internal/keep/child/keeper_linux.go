package child

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// keeperName is the keeper's argv[0], by which it recognises itself and is seen in process lists.
const keeperName = "outlive-keeper"

// keeperLine is the descriptor of the keeper's end of the keeperConn.
const keeperLine = 3

// Times of the keeper.
const (
	lastGrace = 500 * time.Millisecond // from SIGTERM to SIGKILL when outlive is gone
	lookAgain = 100 * time.Microsecond // between two scans for dying descendants
	lookLater = 5 * time.Millisecond   // the same, for those that die slowly
	slowAfter = 100 * time.Millisecond // after which it is lookLater
	stuckTime = 10 * time.Second       // after which processes that SIGKILL does not end are not waited for
)

// init is the keeper's main. Go runs the initialisers of a program in the order of its imports, and those of what child does not
// need come after this one: the keeper never runs them.
//
// All init functions run on the program's first thread, which lives as long as the process: Pdeathsig fires when the thread that
// started a process ends.
func init() {
	if len(os.Args) == 0 || os.Args[0] != keeperName || !isSocket(keeperLine) {
		return
	}
	admitSignals()
	if k, err := newKeeper(); err == nil { // else outlive sees the closed socket and does without
		for !k.finished() {
			k.wait()
			k.sweep()
		}
	}
	unix.Exit(0) // outlive waits for this: skip the runtime's own exit work, such as the race detector's second
}

// admitSignals unblocks what servers are asked to end by: an upgrade of outlive blocks it, and what most threads of the next image
// start inherits that.
func admitSignals() {
	var set unix.Sigset_t
	for _, sig := range []unix.Signal{unix.SIGUSR2, unix.SIGHUP, unix.SIGTERM, unix.SIGINT} {
		set.Val[0] |= 1 << (uint(sig) - 1) // all are under 32, so they are in the first word on every machine
	}
	_ = unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
}

func isSocket(fd int) bool {
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_SEQPACKET
}

// keeper starts processes for outlive, is their parent and inherits their orphans. After outlive's end it lives until it
// has ended them all. One goroutine, on the process's first thread, does everything.
type keeper struct {
	pid     int
	thread  int // everything is done on it; in the keeper the process's first
	line    int // the socket from outlive, with the start requests; its end means that outlive has ended
	wake    int // counts signals, above all SIGCHLD
	proc    procReader
	self    tag // of our outlive; known from the first start request on
	servers []*server
	spares  bool                                    // a server was started whose descendants are left alone
	kill    func(pid int, sig syscall.Signal) error // unix.Kill, but in tests
	stuck   map[int]bool                            // orphans that nobody waits for any more, such as in a dead network file system

	ending   bool      // outlive is gone
	deadline time.Time // when asking ends and killing begins
	empty    int       // scans in a row, after outlive's end, that found no process
}

func newKeeper() (*keeper, error) {
	CloseInheritedOnExec() // the keeper's line too
	_ = os.WriteFile("/proc/self/comm", []byte(keeperName), 0)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	k := &keeper{pid: os.Getpid(), thread: unix.Gettid(), line: keeperLine, wake: wake, kill: unix.Kill, stuck: map[int]bool{}}
	k.watchSignals()
	return k, nil
}

// watchSignals turns signals into wake-ups. Only outlive's end ends the keeper. Signals are handled, not ignored,
// because servers would inherit that; signals ignored already stay ignored, because servers inherit that, too.
func (k *keeper) watchSignals() {
	signals := []os.Signal{syscall.SIGCHLD}
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, signals...)
	go func() {
		one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
		for range ch {
			_, _ = unix.Write(k.wake, one) // full: it is awake already
		}
	}()
}

// wait sleeps until something happens and handles it, the exits first, which are urgent.
func (k *keeper) wait() {
	fds := []unix.PollFd{{Fd: int32(k.wake), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}}
	if !k.ending {
		fds[1].Fd = int32(k.line)
	}
	servers := slices.Clone(k.servers)
	for _, w := range servers {
		pidfd := w.pidfd
		if w.exited {
			pidfd = -1
		}
		fds = append(fds, unix.PollFd{Fd: int32(pidfd), Events: unix.POLLIN}, unix.PollFd{Fd: int32(w.channel), Events: unix.POLLIN})
	}
	timeout := k.timeout()
	var limit *unix.Timespec
	if timeout >= 0 {
		ts := unix.NsecToTimespec(int64(timeout))
		limit = &ts
	}
	if _, err := unix.Ppoll(fds, limit, nil); err != nil {
		return
	}
	for i, w := range servers {
		if fds[3+2*i].Revents != 0 {
			w.listen() // a message before the end counts for it
		}
		if fds[2+2*i].Revents != 0 {
			w.exit()
		}
	}
	if fds[0].Revents != 0 {
		var count [8]byte
		_, _ = unix.Read(k.wake, count[:])
		k.reapOrphans()
	}
	if fds[1].Revents != 0 {
		k.takeRequest()
	}
}

// timeout is how long to sleep at most; -1 is for ever.
func (k *keeper) timeout() time.Duration {
	for _, w := range k.servers {
		if w.exited {
			return pause(time.Since(w.ended))
		}
	}
	switch late := time.Since(k.deadline); {
	case !k.ending:
		return -1
	case k.empty > 0:
		return 0
	case late > 0:
		return pause(late)
	default:
		return -late
	}
}

// pause is the time between two scans for processes that have been dying for so long.
func pause(dying time.Duration) time.Duration {
	if dying > slowAfter {
		return lookLater
	}
	return lookAgain
}

// takeRequest handles the next datagram on the socket from outlive, or begins the end.
func (k *keeper) takeRequest() {
	var b [8]byte
	n, fds, err := receive(k.line, b[:])
	switch {
	case errors.Is(err, unix.EAGAIN):
	case err != nil || n == 0:
		closeFds(fds...)
		k.begin()
	case len(fds) != requestFds: // out of descriptors: the closed channel tells outlive
		closeFds(fds...)
	default:
		k.startFrom(fds)
	}
}

func (k *keeper) startFrom(fds []int) {
	channel := fds[fdChannel]
	defer func() { closeFds(slices.Delete(fds, fdChannel, fdChannel+1)...) }()
	w, err := k.start(fds)
	if err != nil {
		var number syscall.Errno
		if !errors.As(err, &number) {
			number = syscall.EIO
		}
		_ = send(channel, message{kind: kindFailed, number: int32(number)}.encode())
		closeFds(channel)
		return
	}
	k.servers = append(k.servers, w)
	// If the pidfd cannot be sent because outlive is gone, the end follows anyway.
	_ = send(channel, message{kind: kindStarted, number: int32(w.pid)}.encode(), w.pidfd)
}

// start spawns the process that a request asks for.
func (k *keeper) start(fds []int) (*server, error) {
	text, err := fromMemory(fds[fdRequest])
	if err != nil {
		return nil, err
	}
	o, err := decodeStart(text)
	if err != nil {
		return nil, err
	}
	if err := unix.Fchdir(fds[fdDir]); err != nil {
		return nil, err
	}
	defer func() { _ = unix.Chdir("/") }() // do not keep a file system busy
	k.self = o.tag.instance()
	w := &server{slot: o.slot, channel: fds[fdChannel], pidfd: -1, spares: o.tag.slot() == spared, inherits: o.group != 0, born: time.Now()}
	if o.tag.valid() && o.tag.set() == nil {
		defer func() { _ = o.tag.with(keeperSlot).set() }()
	}
	w.pid, err = syscall.ForkExec(o.path, o.argv, &syscall.ProcAttr{
		Dir: o.dir, Env: o.env, Files: []uintptr{uintptr(fds[0]), uintptr(fds[1]), uintptr(fds[2])},
		Sys: &syscall.SysProcAttr{Setsid: !w.inherits, Setpgid: w.inherits, Pgid: o.group, Pdeathsig: syscall.SIGKILL, PidFD: &w.pidfd},
	})
	if err != nil {
		return nil, err
	}
	k.spares = k.spares || w.spares
	return w, nil
}

// begin starts the end: all processes are terminated.
func (k *keeper) begin() {
	k.ending, k.deadline = true, time.Now().Add(lastGrace)
	for _, w := range k.servers {
		if !w.exited {
			w.signal(unix.SIGTERM)
			w.signal(unix.SIGCONT)
		}
	}
	k.eachOrphan(func(pid int) {
		if !k.leftAlone(pid) {
			_ = unix.Kill(pid, unix.SIGTERM)
			_ = unix.Kill(pid, unix.SIGCONT)
		}
	})
}

// finished reports whether outlive is gone and no process is left. After the grace period it kills what it finds, and after
// stuckTime it leaves what does not end even so.
func (k *keeper) finished() bool {
	if !k.ending {
		return false
	}
	late := time.Now().After(k.deadline)
	if late {
		for _, w := range k.servers {
			if !w.exited {
				w.signal(unix.SIGKILL)
			}
		}
	}
	left := len(k.servers)
	k.eachOrphan(func(pid int) {
		if k.leftAlone(pid) || late && k.kill(pid, unix.SIGKILL) == unix.EPERM || k.stuck[pid] {
			return
		}
		left++
	})
	if left > 0 && time.Since(k.deadline) < stuckTime {
		k.empty = 0
		return false
	}
	k.empty++ // the list of children may be incomplete while processes fork and die
	return k.empty > 1
}

func (k *keeper) leftAlone(pid int) bool {
	slot, known := owner(lookAt(pid, k.self), k.self, k.candidates())
	if !known {
		return k.spares // it may belong to a server whose descendants are spared
	}
	return slot == spared
}

// eachOrphan reaps dead orphans and calls f for each living one. Its PID cannot be reused before we reap it, so f may
// signal it.
func (k *keeper) eachOrphan(f func(pid int)) {
	for _, pid := range k.children() {
		if slices.ContainsFunc(k.servers, func(w *server) bool { return w.pid == pid }) {
			continue
		}
		if got, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == 0 {
			f(pid)
		} else {
			delete(k.stuck, pid)
		}
	}
}

// children returns the keeper's children. It may be incomplete while processes fork and die.
//
// The kernel lists children by thread. Those that the keeper started are this thread's, and orphans go to the first
// living thread, which is the same. The client waits for this, so the other threads are not read.
func (k *keeper) children() []int { return k.proc.threadChildren(k.pid, k.thread, nil) }

func (k *keeper) reapOrphans() { k.eachOrphan(func(int) {}) }

func (k *keeper) candidates() []candidate {
	list := make([]candidate, len(k.servers))
	for i, w := range k.servers {
		list[i] = w.claim()
	}
	return list
}
