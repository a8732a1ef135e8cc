package child

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// answerTime is how long the keeper may take to start a process: executing a file on a slow network takes seconds.
const answerTime = 10 * time.Second

// deathTime is how long to wait for the death of a keeper that is ending.
const deathTime = 100 * time.Millisecond

// keeperTries is how many keepers may end without having started anything before outlive does without.
const keeperTries = 3

// errNoKeeper says that a process must be started directly.
var errNoKeeper = errors.New("no keeper")

// keeperConn is our side of one keeper. When our end of the socket closes, for whatever reason, the keeper ends
// everything that it has started.
type keeperConn struct {
	line  *os.File
	proc  *os.Process
	pidfd *os.File
	gone  sync.Once
	lives int // processes that it is the parent of; under keeping.mu
}

// keeping is this program's use of keepers: one at a time, started with the first process. One that does not answer keeps what it has.
var keeping struct {
	mu      sync.Mutex // held while a keeper is chosen and asked; nothing waits in it
	now     *keeperConn
	slow    []*keeperConn // did not answer in time, and have processes
	tries   int           // keepers started since the last that proved itself
	inherit bool          // see PrepareToInherit
	slot    int           // the last that was given away
	slots   map[int]bool  // in use
}

// PrepareToInherit says that all processes are started with [Spec.Inherit]. The keeper then stays in our session,
// because only from there can it put them into our process group, and has a group of its own, so that signals to our
// group do not reach it. Call it before the first [Start].
func PrepareToInherit() {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	keeping.inherit = true
	_, _ = theKeeper() // as in Prepare
}

// mayInherit reports whether PrepareToInherit was called.
func mayInherit() bool {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	return keeping.inherit
}

// Prepare starts the keeper in advance; otherwise the first [Start] does, which takes a few milliseconds more. It does
// not wait until the keeper is ready.
func Prepare() {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	_, _ = theKeeper() // the first Start tries again and handles the failure
}

// theKeeper returns the living keeper. The caller holds keeping.mu.
func theKeeper() (*keeperConn, error) {
	if l := keeping.now; l != nil {
		if !l.dead() {
			return l, nil
		}
		l.kill()
		keeping.now = nil
	}
	if keeping.tries >= keeperTries {
		return nil, errNoKeeper
	}
	keeping.tries++
	l, err := startKeeper()
	if err != nil {
		return nil, fmt.Errorf("start keeper: %w", err)
	}
	keeping.now = l
	return l, nil
}

// startKeeper starts a keeper. The caller holds keeping.mu.
func startKeeper() (*keeperConn, error) {
	// If the keeper is killed, its orphans become our children.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "keeper socket")
	defer theirs.Close()
	l, pidfd := &keeperConn{line: os.NewFile(uintptr(pair[0]), "keeper socket")}, -1
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		defer null.Close()
		l.proc, err = os.StartProcess("/proc/self/exe", []string{keeperName, strconv.Itoa(os.Getpid())}, &os.ProcAttr{
			// It needs little of the runtime: one processor, a small heap.
			Env:   []string{"GOMAXPROCS=1", "GOGC=10", cookieVar + "=" + ownTag().with(keeperSlot).cookie()},
			Files: []*os.File{null, null, null, theirs},
			Sys:   &syscall.SysProcAttr{Setsid: !keeping.inherit, Setpgid: keeping.inherit, PidFD: &pidfd},
		})
	}
	if err == nil && pidfd < 0 { // without pidfds the keeper cannot be watched
		_ = l.proc.Kill()
		_, _ = l.proc.Wait()
		err = unix.ENOSYS
	}
	if err != nil {
		_ = l.line.Close()
		return nil, err
	}
	l.pidfd = os.NewFile(uintptr(pidfd), "keeper")
	return l, nil
}

// dead reports whether the keeper has ended completely: its children have new parents then.
func (l *keeperConn) dead() bool {
	dead := true // and gone, if its pidfd is closed
	_ = control(l.pidfd, func(fd int) (err error) {
		dead, err = ended(fd)
		return err
	})
	return dead
}

// awaitDeath waits briefly for the death of a keeper that has closed a channel. Its descriptors close slightly earlier.
func (l *keeperConn) awaitDeath() bool {
	for end := time.Now().Add(deathTime); time.Now().Before(end); time.Sleep(lookAgain) {
		if l.dead() {
			return true
		}
	}
	return false
}

// control uses a file's descriptor, which stays open meanwhile.
func control(f *os.File, use func(fd int) error) error {
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var useErr error
	if err := rc.Control(func(fd uintptr) { useErr = use(int(fd)) }); err != nil {
		return err
	}
	return useErr
}

// kill makes sure that the keeper is dead: when it returns, the keeper's children are ours.
func (l *keeperConn) kill() {
	l.gone.Do(func() {
		_ = l.proc.Kill()
		_, _ = l.proc.Wait()
		_ = l.line.Close()
		_ = l.pidfd.Close()
	})
}

// endTime is how long a keeper may take to end everything and itself: its grace with a margin.
const endTime = 4 * lastGrace

// EndKeeper ends the keeper and everything it started, and returns when it is reaped, usually within milliseconds. Call
// it at the end of the program: otherwise reaping the keeper is left to our parent, or to the first process of a
// container, which may never do it. The same holds for orphans that became our children. No process may be started or
// waited for afterwards.
//
// After a SIGKILL of outlive the keeper ends as a child of the next subreaper, or of the first process.
func EndKeeper() {
	endKeeper(keeperTries)
}

// RestKeeper is EndKeeper for a program that goes on, or is about to become another: the next [Start] starts the next keeper.
// No process may be started nor waited for meanwhile.
func RestKeeper() { endKeeper(0) }

// endKeeper ends the keeper as if so many had been tried since. What a keeper that had to be killed has left is ours, and ended, too.
func endKeeper(tries int) {
	keeping.mu.Lock()
	all := keeping.slow
	if keeping.now != nil {
		all = append(all, keeping.now)
	}
	keeping.now, keeping.slow, keeping.tries = nil, nil, tries
	keeping.mu.Unlock()
	for _, l := range all {
		l.end()
	}
	if len(all) > 0 {
		endAllAdopted(candidate{slot: anySlot, leader: noLeader}, lastGrace)
	}
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// end makes the keeper end everything, and itself.
func (l *keeperConn) end() {
	l.gone.Do(func() {
		_ = l.line.Close()
		late := time.AfterFunc(endTime, func() { _ = l.proc.Kill() })
		_, _ = l.proc.Wait()
		late.Stop()
		_ = l.pidfd.Close()
	})
}

// hold notes that l has one process more.
func (l *keeperConn) hold() {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	l.lives++
}

// release notes that one of its processes is gone. A keeper that was slow ends with the last.
func (l *keeperConn) release() {
	keeping.mu.Lock()
	l.lives--
	at := slices.Index(keeping.slow, l)
	over := at >= 0 && l.lives == 0
	if over {
		keeping.slow = slices.Delete(keeping.slow, at, at+1)
	}
	keeping.mu.Unlock()
	if over {
		l.end()
	}
}

// giveUp deals with a keeper that has not answered on a channel in time. One that has processes lives on for them alone, and kills the
// one that it may yet start; the next start has another keeper. One that has none is killed.
func (l *keeperConn) giveUp(channel int) error {
	keeping.mu.Lock()
	parent := l.lives > 0
	if parent && keeping.now == l {
		keeping.now, keeping.slow = nil, append(keeping.slow, l)
	}
	keeping.mu.Unlock()
	if !parent {
		l.kill()
		return errNoKeeper
	}
	_ = send(channel, message{kind: kindSignal, number: int32(unix.SIGKILL)}.encode())
	return unix.ETIMEDOUT
}

// takeSlot returns a slot that none of our living processes has. ok is false when there are too many.
func takeSlot() (slot int, ok bool) {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	if keeping.slots == nil {
		keeping.slots = make(map[int]bool)
	}
	for range keeperSlot {
		keeping.slot = keeping.slot%(keeperSlot-1) + 1
		if !keeping.slots[keeping.slot] {
			keeping.slots[keeping.slot] = true
			return keeping.slot, true
		}
	}
	return 0, false
}

func freeSlot(slot int) {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	delete(keeping.slots, slot)
}

// requestStart sends a start request and returns our end of the new process's channel.
func requestStart(o startRequest, files [3]*os.File) (l *keeperConn, channel int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, -1, os.NewSyscallError("socketpair", err)
	}
	defer closeFds(pair[1])
	text, err := inMemory(o.encode())
	if err != nil {
		closeFds(pair[0])
		return nil, -1, os.NewSyscallError("memfd_create", err)
	}
	defer text.Close()
	dir, err := unix.Open(".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		closeFds(pair[0])
		return nil, -1, os.NewSyscallError("open", err)
	}
	defer closeFds(dir)
	fds := make([]int, 0, requestFds)
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	fds = append(fds, pair[1], dir, int(text.Fd()))

	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	for range keeperTries {
		if l, err = theKeeper(); err != nil {
			break
		}
		err = control(l.line, func(fd int) error { return send(fd, []byte{0}, fds...) })
		if err == nil {
			return l, pair[0], nil
		}
		if !ofKeeper(err) {
			break
		}
		l.kill()
	}
	closeFds(pair[0])
	return nil, -1, err
}

// ofKeeper reports whether a request was not sent because the keeper does not read, or is gone. A want of memory or of descriptors is
// ours, and no reason to end what the keeper has started.
func ofKeeper(err error) bool {
	var number syscall.Errno
	return !errors.As(err, &number) || number == unix.EAGAIN || number == unix.EPIPE || number == unix.ECONNRESET
}

// pollTimeout is the remaining time in milliseconds for poll, at least 0: a negative one would wait for ever.
func pollTimeout(end, now time.Time) int { return int(max(0, end.Sub(now)).Milliseconds()) }

// answer waits for the keeper's answer to a start request: the new process and its pidfd. If the process cannot be
// started, the error is its errno, and ETIMEDOUT where the keeper is still at it, as with a file on a dead network file system; any
// other error says that the outcome is unknown, and that no such process will live.
func (l *keeperConn) answer(channel int, within time.Duration) (pid, pidfd int, err error) {
	for end := time.Now().Add(within); ; {
		p := []unix.PollFd{{Fd: int32(channel), Events: unix.POLLIN}}
		n, err := unix.Poll(p, pollTimeout(end, time.Now()))
		if n > 0 {
			break
		}
		if err == nil || !errors.Is(err, unix.EINTR) {
			return 0, -1, l.giveUp(channel)
		}
	}
	var b [messageSize]byte
	n, fds, err := receive(channel, b[:])
	if err == nil && n == 0 {
		return 0, -1, errNoKeeper // it died, or could not take the descriptors
	}
	m, decodeErr := decodeMessage(b[:n])
	if err = errors.Join(err, decodeErr); err != nil {
		closeFds(fds...)
		return 0, -1, err
	}
	keeping.mu.Lock()
	keeping.tries = 0
	keeping.mu.Unlock()
	if m.kind == kindFailed {
		closeFds(fds...)
		return 0, -1, syscall.Errno(m.number)
	}
	if len(fds) != 1 { // no descriptor was free for its pidfd, without which it cannot be held
		closeFds(fds...)
		_ = send(channel, message{kind: kindSignal, number: int32(unix.SIGKILL)}.encode())
		return 0, -1, unix.EMFILE
	}
	return int(m.number), fds[0], nil
}
