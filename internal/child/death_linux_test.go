package child

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// told is the news of one process, in order.
type told struct {
	*running
	news chan string
	died chan Status
}

// startTold starts a process whose death somebody wants to know of, and of which the keeper knows that.
func startTold(t *testing.T, spec Spec) *told {
	t.Helper()
	r := &told{running: &running{exited: make(chan Status, 2)}, news: make(chan string, 4), died: make(chan Status, 2)}
	spec.OnDeath = func(s Status) {
		r.news <- "died"
		r.died <- s
	}
	p, err := Start(spec, func(s Status) {
		r.news <- "gone"
		r.exited <- s
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		closeAll(p.ours)
	})
	r.Process, r.lines = p, bufio.NewReader(p.Stdout())
	r.ask(true) // the process's own goroutine may be late with it
	return r
}

func (r *told) ask(want bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.askForDeath(want)
}

// heard is all the news of a process that is gone.
func (r *told) heard(t *testing.T) (news string, died, gone Status) {
	t.Helper()
	gone = r.wait(t)
	close(r.died)
	close(r.news)
	for n := range r.news {
		news += n + " "
	}
	return strings.TrimSpace(news), <-r.died, gone
}

func TestADeathIsToldBeforeTheEnd(t *testing.T) {
	for name, end := range map[string]func(*told){
		"exit 3": func(r *told) { _ = r.Stdin().Close() },
		"kill":   func(r *told) { _ = unix.Kill(r.PID(), unix.SIGKILL) },
		"abort":  func(r *told) { _ = unix.Kill(r.PID(), unix.SIGABRT) },
	} {
		t.Run(name, func(t *testing.T) {
			r := startTold(t, Spec{Argv: []string{"sh", "-c", "ulimit -c 0; echo up; read x; exit 3"}})
			if got := r.line(t); got != "up" {
				t.Fatalf("says %q", got)
			}
			end(r)
			news, died, gone := r.heard(t)
			if name == "exit 3" { // its stdin is closed here, so there is no telling that nobody else holds it
				if news != "gone" || gone.Code != 3 {
					t.Errorf("%s: %+v", news, gone)
				}
				return
			}
			if news != "died gone" {
				t.Fatalf("told: %s", news)
			}
			if d := cmp.Diff(died, gone); d != "" {
				t.Errorf("the two tell otherwise (-first +second):\n%s", d)
			}
			want := map[string]Status{"kill": {Code: 137, Signalled: true, Signal: "killed"}, "abort": {Code: 134, Signalled: true, Signal: "aborted"}}[name]
			died.Uptime, died.MaxRSS, died.CPU = 0, 0, 0
			if d := cmp.Diff(want, died); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if gone.Uptime <= 0 || gone.CPU <= 0 || gone.MaxRSS < 1<<18 {
				t.Errorf("used: %+v", gone)
			}
		})
	}
	t.Run("exit 7", func(t *testing.T) {
		r := startTold(t, Spec{Argv: []string{"sh", "-c", "read x; exit 7"}})
		if _, err := io.WriteString(r.Stdin(), "x\n"); err != nil {
			t.Fatal(err)
		}
		if news, died, gone := r.heard(t); news != "died gone" || died.Code != 7 || died != gone {
			t.Errorf("%s: %+v, %+v", news, died, gone)
		}
	})
}

// The first news says nothing of descendants; the second still says that there are none.
func TestDescendantsAreGoneByTheSecondNews(t *testing.T) {
	for _, kind := range []string{"group", "setsid", "daemon", "hydra", "clobbered-daemon"} {
		t.Run(kind, func(t *testing.T) {
			token := newToken(t)
			r := startTold(t, Spec{Argv: []string{os.Args[0], kind, token}, Env: withMode("victim")})
			if got := r.line(t); got != "up" {
				t.Fatalf("victim says %q", got)
			}
			_ = unix.Kill(r.PID(), unix.SIGKILL)
			news, _, _ := r.heard(t)
			if left := survivors(token); len(left) > 0 {
				t.Errorf("survivors:\n%s", strings.Join(left, "\n"))
			}
			if news != "died gone" {
				t.Errorf("told: %s", news)
			}
		})
	}
}

// While somebody may take what is in the dead process's stdin, what is unread is not final.
func TestADeathIsNotToldWhileItsStdinIsHeld(t *testing.T) {
	const holder = `exec 3<&0; setsid sh -c 'echo up; exec sleep 60 >/dev/null 2>&1' <&3 3<&- & wait`
	r := startTold(t, Spec{Argv: []string{"sh", "-c", holder}, KillMode: KillGroup}) // which leaves the holder alone
	r.line(t)
	left := children(r.PID())
	if len(left) != 1 || r.deserted() {
		t.Fatalf("%d descendants, deserted %v", len(left), r.deserted())
	}
	_ = unix.Kill(r.PID(), unix.SIGKILL)
	if news, _, _ := r.heard(t); news != "gone" || r.deserted() {
		t.Errorf("told: %s, deserted %v", news, r.deserted())
	}
	_ = unix.Kill(left[0], unix.SIGKILL)
	await(t, descriptor(r.ours[0]), 0) // an error of the pipe is always told
	if !r.deserted() {
		t.Error("nobody holds it, and it is not deserted")
	}
}

// Whoever goes on with a held process may be a version that knows one kind of news only.
func TestAHeldProcessesKeeperTellsOfTheEndOnly(t *testing.T) {
	r := startTold(t, Spec{Argv: []string{"sleep", "60"}})
	release, ok := r.Hold()
	if !ok {
		t.Fatal("a living process cannot be held")
	}
	_ = unix.Kill(r.PID(), unix.SIGKILL)
	dead(t, r.running)
	var b [messageSize]byte
	n, _, err := unix.Recvfrom(descriptor(r.tree.kept.channel), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	if m, decodeErr := decodeMessage(b[:max(n, 0)]); err != nil || decodeErr != nil || m.kind != kindExited {
		t.Errorf("the first news is %q, %v, %v", m.kind, err, decodeErr)
	}
	release()
	if news, _, gone := r.heard(t); news != "gone" || gone.Code != 137 {
		t.Errorf("%s: %+v", news, gone)
	}

	r = startTold(t, Spec{Argv: []string{"sleep", "60"}})
	if release, ok = r.Hold(); !ok {
		t.Fatal("a living process cannot be held")
	}
	release() // it was not handed over after all
	_ = unix.Kill(r.PID(), unix.SIGKILL)
	if news, _, _ := r.heard(t); news != "died gone" {
		t.Errorf("told: %s", news)
	}
}

// A process may end before its keeper has read what it is asked. What the keeper says of it counts all the same.
func TestAKeeperThatHasNotReadTheQuestion(t *testing.T) {
	p, keeper := played(t, func(Status) {})
	_ = unix.Kill(p.PID(), unix.SIGKILL)
	if _, err := unix.Wait4(p.PID(), nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	p.askForDeath(true)
	say(t, keeper, message{kind: kindExited, number: 3 << 8})
	closeFds(keeper)
	if gone := p.end(); gone.Code != 3 {
		t.Errorf("gone %+v", gone)
	}
	if p.tree.kept.line.proc.Signal(unix.Signal(0)) != nil {
		t.Error("the keeper was taken for dead")
	}
}

// played is a child of ours whose keeper is played by the test, which has the other end of its channel.
func played(t *testing.T, onDeath func(Status)) (p *Process, keeper int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	var files [2]*os.File
	if files[0], files[1], err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	pidfd := -1
	server, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{
		Files: []*os.File{files[0], nil, nil}, Sys: &unix.SysProcAttr{Setsid: true, PidFD: &pidfd}})
	if err != nil {
		t.Fatal(err)
	}
	_ = files[0].Close()
	t.Cleanup(func() { _ = files[1].Close() })
	cmd := exec.Command("/bin/sleep", "60") // for the keeper that is buried
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	line := &lifeline{proc: cmd.Process, line: null, pidfd: null}
	t.Cleanup(line.bury)
	p = &Process{pid: server.Pid, started: time.Now(), onDeath: onDeath, ours: [3]*os.File{files[1]}}
	p.tree.kept = &kept{line: line, channel: os.NewFile(uintptr(pair[0]), "keeper"), pidfd: pidfd, slot: keeperSlot - 1}
	return p, pair[1]
}

// await waits until one of the events, or an error, comes about at a descriptor.
func await(t *testing.T, fd int, events int16) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, 10_000)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || n == 0:
			t.Fatalf("waited in vain: %v", err)
		default:
			return
		}
	}
}

func say(t *testing.T, keeper int, m message) {
	t.Helper()
	if err := send(keeper, m.encode()); err != nil {
		t.Fatal(err)
	}
}

// A keeper that dies between the two news has told how the process ended; that it is gone is seen to here.
func TestTheKeeperDiesBetweenTheNews(t *testing.T) {
	var died []Status
	p, keeper := played(t, func(s Status) { died = append(died, s) })
	_ = unix.Kill(p.PID(), unix.SIGKILL)
	await(t, p.tree.kept.pidfd, unix.POLLIN)
	say(t, keeper, message{kind: kindDied, number: 9, lived: time.Second, cpu: 3, maxrss: 4})
	closeFds(keeper)
	want := Status{Code: 137, Signalled: true, Signal: "killed", Uptime: time.Second, CPU: 3, MaxRSS: 4}
	if gone := p.end(); gone != want || !slices.Equal(died, []Status{want}) {
		t.Errorf("died %+v, gone %+v", died, gone)
	}
	if err := unix.Kill(p.PID(), 0); err != unix.ESRCH {
		t.Errorf("it is not reaped: %v", err)
	}
}

// After an upgrade in place the keeper is an older version, which tells of the exit only, or perhaps a newer one, which
// has more to tell.
func TestAKeeperOfAnotherVersion(t *testing.T) {
	for name, kinds := range map[string]string{"older": "E", "newer": "xyE", "tells twice": "DDE"} {
		t.Run(name, func(t *testing.T) {
			deaths := 0
			p, keeper := played(t, func(Status) { deaths++ })
			_ = unix.Kill(p.PID(), unix.SIGKILL)
			if _, err := unix.Wait4(p.PID(), nil, 0, nil); err != nil {
				t.Fatal(err)
			}
			for _, kind := range []byte(kinds) {
				say(t, keeper, message{kind: kind, number: 3 << 8})
			}
			if gone := p.end(); gone.Code != 3 || deaths != strings.Count(kinds[:min(1, len(kinds))], "D") {
				t.Errorf("%d deaths, gone %+v", deaths, gone)
			}
			var b [messageSize]byte
			if n, _, err := receive(keeper, b[:]); err != nil || b[0] != kindAsk || n != messageSize {
				t.Errorf("the keeper was told %q, %v", b[0], err)
			}
			closeFds(keeper)
		})
	}
}

// Whoever waits for the death hears of it; then nobody else does, and the exit is told as ever.
func TestHearDeath(t *testing.T) {
	deaths := 0
	p, keeper := played(t, func(Status) { deaths++ })
	if _, ok := p.HearDeath(time.Millisecond); ok {
		t.Fatal("heard of a death before there was one")
	}
	exit := make(chan Status, 1)
	go func() { exit <- p.end() }()
	_ = unix.Kill(p.PID(), unix.SIGKILL)
	if _, err := unix.Wait4(p.PID(), nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	heard := make(chan Status, 1)
	go func() {
		if st, ok := p.HearDeath(10 * time.Second); ok {
			heard <- st
		}
		close(heard)
	}()
	say(t, keeper, message{kind: kindDied, number: 9, cpu: 3})
	got, ok := <-heard // if the other goroutine was sooner, that one has been told
	say(t, keeper, message{kind: kindExited, number: 9, cpu: 3})
	want := Status{Code: 137, Signalled: true, Signal: "killed", CPU: 3}
	if gone := <-exit; gone != want || ok && got != want || ok == (deaths == 1) {
		t.Errorf("heard %v %+v, told of %d deaths, gone %+v", ok, got, deaths, gone)
	}
	if _, ok := p.HearDeath(time.Millisecond); ok {
		t.Error("heard of it again")
	}
	closeFds(keeper)
}

// A keeper of an older version tells of the exit only: that is no news of the death, and not lost.
func TestHearDeathMeetsTheExit(t *testing.T) {
	deaths := 0
	p, keeper := played(t, func(Status) { deaths++ })
	_ = unix.Kill(p.PID(), unix.SIGKILL)
	if _, err := unix.Wait4(p.PID(), nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	say(t, keeper, message{kind: kindExited, number: 3 << 8})
	if _, ok := p.HearDeath(10 * time.Second); ok {
		t.Error("took the exit for the death")
	}
	if gone := p.end(); gone.Code != 3 || deaths != 0 {
		t.Errorf("%d deaths, gone %+v", deaths, gone)
	}
	closeFds(keeper)
}

// While somebody waits for the news of a death, another goroutine may see the whole end and close the channel.
func TestHearDeathAndTheEndAtOnce(t *testing.T) {
	for range 30 {
		p, keeper := played(t, func(Status) {})
		_ = unix.Kill(p.PID(), unix.SIGKILL)
		if _, err := unix.Wait4(p.PID(), nil, 0, nil); err != nil {
			t.Fatal(err)
		}
		heard := make(chan struct{})
		go func() {
			p.HearDeath(time.Millisecond)
			close(heard)
		}()
		say(t, keeper, message{kind: kindDied, number: 9})
		say(t, keeper, message{kind: kindExited, number: 9})
		if gone := p.end(); gone.Code != 137 {
			t.Errorf("gone %+v", gone)
		}
		<-heard
		closeFds(keeper)
	}
}
