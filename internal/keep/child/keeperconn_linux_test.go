package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// A wait that was interrupted at its very end does not become one without end.
func TestPollTimeout(t *testing.T) {
	end := time.Unix(100, 0)
	for before, want := range map[time.Duration]int{5 * time.Second: 5000, time.Microsecond: 0, 0: 0, -time.Millisecond: 0, -time.Hour: 0} {
		if got := pollTimeout(end, end.Add(-before)); got != want {
			t.Errorf("%v before the end: %d, want %d", before, got, want)
		}
	}
}

// TestTheKeeperIsReplacedAfterARest: RestKeeper leaves nothing, and a program that goes on can start processes as before.
func TestTheKeeperIsReplacedAfterARest(t *testing.T) {
	first := start(t, "ignore-term")
	if first.tree.kept == nil {
		t.Skip("there is no keeper to replace: the kernel or container has no pidfds or refuses subreapers")
	}
	keeper := first.tree.kept.line.proc.Pid
	RestKeeper()
	if s := first.wait(t); !s.Signalled {
		t.Errorf("the keeper's process ended with %+v", s)
	}
	if err := unix.Kill(keeper, 0); err != unix.ESRCH {
		t.Errorf("keeper %d: %v", keeper, err)
	}
	next := start(t, "ignore-term")
	if next.tree.kept == nil || next.tree.kept.line.proc.Pid == keeper {
		t.Error("the next process has no keeper of its own")
	}
	if err := next.Kill(); err != nil {
		t.Fatal(err)
	}
	next.wait(t)
}

// TestARequestThatCannotBeSentEndsNothing: what a start lacks is not the keeper's fault, which all other processes would pay for.
func TestARequestThatCannotBeSentEndsNothing(t *testing.T) {
	r := start(t, "ignore-term")
	if r.tree.kept == nil {
		t.Skip("there is no keeper: the kernel or container has no pidfds or refuses subreapers")
	}
	keeper := keeperPID()
	closed, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	if _, _, err := requestStart(someOrder, [3]*os.File{closed, closed, closed}); !errors.Is(err, unix.EBADF) {
		t.Errorf("error %v, want %v", err, unix.EBADF)
	}
	if now := keeperPID(); now != keeper {
		t.Errorf("keeper %d, before %d", now, keeper)
	}
	select {
	case s := <-r.exited:
		t.Errorf("a process has ended with it: %+v", s)
	default:
	}
}

// TestAProcessThatCannotBeHeldIsEnded: where no descriptor is free for its pidfd that one process is given up, and not the keeper with
// all others.
func TestAProcessThatCannotBeHeldIsEnded(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFds(pair[0], pair[1])
	if err := send(pair[1], message{kind: kindStarted, number: 4711}.encode()); err != nil { // the kernel drops what finds no room
		t.Fatal(err)
	}
	var l keeperConn // nobody is behind it
	if _, _, err := l.answer(pair[0], answerTime); !errors.Is(err, unix.EMFILE) {
		t.Errorf("error %v, want %v", err, unix.EMFILE)
	}
	var b [messageSize]byte
	n, _, err := receive(pair[1], b[:])
	if err != nil {
		t.Fatal(err)
	}
	if m, err := decodeMessage(b[:n]); err != nil || m.kind != kindSignal || m.number != int32(unix.SIGKILL) {
		t.Errorf("the keeper is told %+v, %v", m, err)
	}
}

// TestWhatAKeeperLeavesIsEnded: a keeper that does not end in time is killed, and what it had becomes ours.
func TestWhatAKeeperLeavesIsEnded(t *testing.T) {
	start(t, "exit", "0").wait(t)
	if keeperPID() == 0 {
		t.Skip("there is no keeper: the kernel or container has no pidfds or refuses subreapers")
	}
	left := exec.Command("sleep", "600")
	left.Env = append(os.Environ(), cookieVar+"="+ownTag().with(7).cookie())
	spare := exec.Command("sleep", "600")
	spare.Env = append(os.Environ(), cookieVar+"="+ownTag().with(spared).cookie())
	for _, c := range []*exec.Cmd{left, spare} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		}()
		// Linux says that a program runs before /proc shows its environment.
		await.Until(t, fmt.Sprintf("the tag of process %d is seen", c.Process.Pid), func() bool {
			return newProcReader().environTag(c.Process.Pid).valid()
		})
	}
	RestKeeper()
	if err := unix.Kill(left.Process.Pid, 0); err != unix.ESRCH {
		t.Errorf("a server's orphan lives on: %v", err)
	}
	if err := unix.Kill(spare.Process.Pid, 0); err != nil {
		t.Errorf("what is to be spared is gone: %v", err)
	}
}

// TestASlowStartEndsNothing: a keeper that takes too long to start one process goes on with those that it has. What it may yet start is
// killed, and the next process has another keeper.
func TestASlowStartEndsNothing(t *testing.T) {
	r := start(t, "ignore-term")
	if r.tree.kept == nil {
		t.Skip("there is no keeper: the kernel or container has no pidfds or refuses subreapers")
	}
	keeper := keeperPID()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer closeFds(pair[0], pair[1])
	if _, _, err := r.tree.kept.line.answer(pair[0], 0); !errors.Is(err, unix.ETIMEDOUT) {
		t.Errorf("error %v, want %v", err, unix.ETIMEDOUT)
	}
	var b [messageSize]byte
	n, _, err := receive(pair[1], b[:])
	if err != nil {
		t.Fatal(err)
	}
	if m, err := decodeMessage(b[:n]); err != nil || m.kind != kindSignal || m.number != int32(unix.SIGKILL) {
		t.Errorf("the keeper is told %+v, %v", m, err)
	}
	next := start(t, "exit", "4")
	if now := keeperPID(); next.tree.kept == nil || now == keeper {
		t.Errorf("keeper %d, before %d", now, keeper)
	}
	if s := next.wait(t); s.Code != 4 {
		t.Errorf("the next process ended with %+v", s)
	}
	select {
	case s := <-r.exited:
		t.Errorf("a process has ended with it: %+v", s)
	default:
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	r.wait(t)
	gone(t, keeper)
}

// TestServersHearSIGTERM: also those of a keeper that was started while the signal was blocked, as after an upgrade.
func TestServersHearSIGTERM(t *testing.T) {
	start(t, "exit", "0").wait(t)
	if keeperPID() == 0 {
		t.Skip("there is no keeper: the kernel or container has no pidfds or refuses subreapers")
	}
	RestKeeper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const bit = 1 << (unix.SIGTERM - 1)
	blocked, was := unix.Sigset_t{}, unix.Sigset_t{}
	blocked.Val[0] = bit
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, &was); err != nil {
		t.Fatal(err)
	}
	Prepare()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &was, nil); err != nil {
		t.Fatal(err)
	}
	exited := make(chan Status, 1)
	p, err := Start(Spec{Argv: []string{"/bin/sleep", "600"}}, func(s Status) { exited <- s })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = p.Kill()
		<-exited
		closeAll(p.ours)
	}()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "SigBlk:")
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if mask, err := strconv.ParseUint(text, 16, 64); err != nil || mask&bit != 0 {
		t.Errorf("it has blocked %q, %v; want SIGTERM to reach it", text, err)
	}
}
