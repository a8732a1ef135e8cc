//go:build unix

package agentrun

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// kept starts an agent as the monitor does, without any terminal of ours, and waits until its own can be joined.
func kept(t *testing.T, script string) *testRun {
	t.Helper()
	r := wrap(t, "sh", "-c", script)
	r.cmd.Env = append(r.cmd.Env, "AGENTRUN_TEST_TERMINAL=1", "TERM=")
	r.start()
	r.until("a terminal", func(r Report) bool { return r.Socket != "" })
	return r
}

// joins has a person in a terminal of 30 rows and 90 columns join an agent's.
func (r *testRun) joins(env ...string) *desk {
	r.t.Helper()
	return sitDown(r.t, r.visitor(env...))
}

func (r *testRun) visitor(env ...string) *testRun {
	r.t.Helper()
	self, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	v := &testRun{t: r.t, home: r.home + "/nothing", cmd: exec.Command(self), done: make(chan struct{})}
	v.cmd.Env = append(append(os.Environ(), attachTo+"="+SocketPath(r.home, "shop"), "GORACE=atexit_sleep_ms=0"), env...)
	return v
}

// echoes is an agent that says its terminal's size whenever that changes, and what it is told.
const echoes = `stty -echo; trap 'stty size' WINCH; stty size; echo ready
while :; do if read line; then echo "got <$line>"; case $line in exit*) exit ${line#exit};; esac; fi; done`

func lasts(t *testing.T, r *testRun) {
	t.Helper()
	if report, err := r.report(); err != nil || report.Exit != nil || !lives(report.Process()) {
		t.Errorf("the agent does not go on: %+v, %v", report, err)
	}
}

// A person joins an agent that was started without a terminal: sees what it had written, types, leaves, and it goes on.
func TestAPersonJoins(t *testing.T) {
	t.Parallel()
	r := kept(t, echoes)
	r.until("its size", said("40 120"))
	before := time.Now()
	d := r.joins()
	d.shows("joined")
	d.shows("ready") // which was written before
	d.shows("30 90")
	d.raw(true)
	report := r.until("who has joined", func(r Report) bool { return len(r.Joined) == 1 })
	if j := report.Joined[0]; j.Who != "ann" || j.PID != d.cmd.Process.Pid || j.ReadOnly || j.Since.Before(before.Add(-time.Second)) {
		t.Errorf("joined: %+v", j)
	}
	if !report.TypedAt.IsZero() {
		t.Errorf("typed at %v", report.TypedAt)
	}
	d.types("hello\r")
	d.shows("got <hello>")
	if report = r.until("a key", func(r Report) bool { return !r.TypedAt.IsZero() }); report.TypedAt.Before(before) {
		t.Errorf("typed at %v", report.TypedAt)
	}
	if err := pty.Setsize(d.slave, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	d.shows("33 77")
	d.types("\x1c")
	if code := d.ends(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	d.raw(false)
	r.until("nobody who has joined", func(r Report) bool { return len(r.Joined) == 0 })
	lasts(t, r)
	again := r.joins()
	again.shows("got <hello>")
	again.types("exit7\r")
	if code := again.ends(); code != 7 {
		t.Errorf("exit status %d, want the agent's 7", code)
	}
	again.raw(false)
	if code := r.ends(); code != 7 {
		t.Errorf("the wrapper's exit status %d, want 7", code)
	}
	if _, err := os.Stat(SocketPath(r.home, "shop")); !os.IsNotExist(err) {
		t.Errorf("its socket stays: %v", err)
	}
}

// Two have joined: both see everything, both can type, but for the one who only reads; the smaller window counts.
func TestTwoJoin(t *testing.T) {
	t.Parallel()
	r := kept(t, echoes)
	one := r.joins()
	one.shows("30 90")
	two := r.joins()
	two.shows("joined")
	if err := pty.Setsize(two.slave, &pty.Winsize{Rows: 20, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	one.shows("20 90")
	two.shows("20 90")
	one.types("from one\r")
	two.shows("got <from one>")
	two.types("from two\r")
	one.shows("got <from two>")

	reader := r.joins("AGENTRUN_TEST_READONLY=1")
	reader.shows("got <from two>")
	if err := pty.Setsize(reader.slave, &pty.Winsize{Rows: 5, Cols: 10}); err != nil {
		t.Fatal(err)
	}
	reader.types("from the reader\r")
	two.types("\x1c")
	two.ends()
	one.shows("30 90") // the reader's window does not count
	one.types("last\r")
	one.shows("got <last>")
	if strings.Contains(one.text(), "from the reader") {
		t.Errorf("who only reads has typed: %q", one.text())
	}
	reader.types("\x1c")
	if code := reader.ends(); code != 0 {
		t.Errorf("the reader's exit status %d", code)
	}
	lasts(t, r)
}

// Whatever ends those who have joined, their terminals are set back, and the agent does not hear of it.
func TestJoinersEnd(t *testing.T) {
	t.Parallel()
	const draws = `stty raw -echo; printf '\033[?1049h\033[?25l\033[?1000h\033[?2004hready'; while :; do sleep 0.05; done`
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGHUP: 129, syscall.SIGINT: 130, syscall.SIGKILL: -1} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			r := kept(t, draws)
			d := r.joins()
			d.shows("ready")
			d.shows("\x1b[?1000h")
			if err := d.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if got := d.ends(); got != code {
				t.Errorf("exit status %d, want %d", got, code)
			}
			if sig != syscall.SIGKILL {
				d.raw(false)
				d.shows("\x1b[?1000l\x1b[?2004l\x1b[?25h\x1b[?1049l")
			}
			r.until("nobody who has joined", func(r Report) bool { return len(r.Joined) == 0 })
			lasts(t, r)
			r.joins().shows("\x1b[?1049h")
		})
	}
	t.Run("their window is closed", func(t *testing.T) {
		t.Parallel()
		r := kept(t, draws)
		d := r.joins()
		d.shows("ready")
		_, _ = d.slave.Close(), d.keyboard.Close()
		d.ends()
		r.until("nobody who has joined", func(r Report) bool { return len(r.Joined) == 0 })
		lasts(t, r)
	})
	t.Run("the agent is killed", func(t *testing.T) {
		t.Parallel()
		r := kept(t, draws)
		d := r.joins()
		d.shows("ready")
		report, err := r.report()
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(report.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := d.ends(); code != 137 {
			t.Errorf("exit status %d, want 137", code)
		}
		d.raw(false)
		d.shows("\x1b[?1049l")
	})
	t.Run("the wrapper is killed", func(t *testing.T) {
		t.Parallel()
		r := kept(t, draws)
		d := r.joins()
		d.shows("ready")
		if err := r.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if code := d.ends(); code != 1 {
			t.Errorf("exit status %d, want 1", code)
		}
		d.raw(false)
		d.shows("the connection is lost")
	})
}

// A program that draws only when its terminal has another size is drawn anew also for somebody whose window has the same.
func TestJoiningRedraws(t *testing.T) {
	t.Parallel()
	r := kept(t, `was=$(stty size); n=0
trap 'now=$(stty size); if [ "$now" != "$was" ]; then was=$now; n=$((n+1)); echo "drawn $n at $now"; fi' WINCH
echo ready; while :; do sleep 0.02; done`)
	d := r.joins()
	d.shows("drawn 1 at 30 90")
	d.types("\x1c")
	d.ends()
	again := r.joins()
	again.shows("drawn 2 at 29 89")
	again.shows("drawn 3 at 30 90")
}

// What terminal programs ask is answered while nobody looks, and only once when somebody does.
func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	r := kept(t, `echo $TERM; stty raw -echo; printf 'abc\033[6n'; head -c 6 | od -An -c; printf '\033[9;2H\033[6n'; head -c 6 | od -An -c; read x`)
	r.until("its kind", said("xterm-256color"))
	r.until("the first answer", said(`033   [   2   ;   4   R`))
	r.until("the second answer", said(`033   [   9   ;   2   R`))
	d := r.joins()
	d.shows("9   ;   2   R")
	if strings.Contains(d.text(), "\x1b[6n") {
		t.Errorf("the person's terminal is asked, too: %q", d.text())
	}
}

// Somebody who does not read any more holds up nobody, and sees how it is now when they read again.
func TestAStoppedJoinerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	r := kept(t, `stty -echo; echo ready; read x; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo "line $i of a long output that nobody reads in time, so much is sure"; done; echo "the end"; read x`)
	one := r.joins()
	one.shows("ready")
	two := r.joins()
	two.shows("ready")
	if err := two.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	one.types("\r")
	one.shows("the end")
	if err := two.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	two.shows("the end")
	two.raw(true)
	if n := strings.Count(two.text(), "\n"); n > 50_000 {
		t.Errorf("the stopped one was sent %d lines", n)
	}
}

// The terminal of a wrapper that somebody has started in their own can be joined, too.
func TestAPersonsOwnTerminalIsJoined(t *testing.T) {
	t.Parallel()
	owner := atDesk(t, "sh", "-c", echoes)
	owner.shows("ready")
	d := owner.joins()
	d.shows("ready")
	if err := pty.Setsize(d.slave, &pty.Winsize{Rows: 20, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	owner.shows("20 90")
	d.types("hi\r")
	owner.shows("got <hi>")
	d.types("\x1c")
	d.ends()
	owner.types("exit0\r")
	if code := owner.ends(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// The socket is its user's alone, also where the home's path is too long for one.
func TestTheSocketIsPrivate(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]bool{"in the home": false, "elsewhere": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "door")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if long {
				dir = filepath.Join(dir, strings.Repeat("long", 30))
			}
			dir = filepath.Join(dir, "run")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			l, at, err := listenAt(filepath.Join(dir, "shop.tty"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			t.Cleanup(func() {
				if long {
					_ = os.RemoveAll(filepath.Dir(at))
				}
			})
			for path, want := range map[string]os.FileMode{at: 0o600, filepath.Dir(at): 0o700} {
				if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
					t.Errorf("%s: %v, %v, want %v", path, st.Mode(), err, want)
				}
			}
			conn, err := net.Dial("unix", at)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		})
	}
}

// What is typed right before leaving reaches the agent, though what is drawn for who has left can no longer be sent.
func TestTheLastLineOfWhoLeaves(t *testing.T) {
	t.Parallel()
	const people = 200
	got := make(chan string, people)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "tty"))
	if err != nil {
		t.Fatal(err)
	}
	sh := share(newSeen(Report{}), l, true, window{Rows: 24, Cols: 80}, func(int, int) {}, func(b []byte) error {
		got <- string(b)
		return nil
	})
	t.Cleanup(func() { sh.close(Exit{}) })
	for i := range people {
		line := fmt.Sprintf("line %d\r", i)
		conn, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := sendValue(conn, helloFrame, hello{Version: 1, Who: "ann"}); err != nil {
			t.Fatal(err)
		}
		if kind, content, err := readFrame(conn); kind != welcomeFrame || err != nil {
			t.Fatalf("%q %s, %v", kind, content, err)
		}
		if err := sendFrame(conn, inputFrame, []byte(line)); err != nil {
			t.Fatal(err)
		}
		sh.output([]byte("more\r\n"), time.Now())
		_ = conn.Close()
		select {
		case typed := <-got:
			if typed != line {
				t.Fatalf("the agent got %q, want %q", typed, line)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%q of the one who left at once did not reach the agent", line)
		}
	}
}

// Whoever says nothing, or nonsense, is turned away, and nobody is kept from joining by them.
func TestNonsenseIsTurnedAway(t *testing.T) {
	t.Parallel()
	r := kept(t, echoes)
	for _, nonsense := range []string{"GET / HTTP/1.1\r\n\r\n", "h\xff\xff\xff\xff", "h\x00\x00\x00\x02{}", string(appendFrame(nil, inputFrame, []byte("x\r"))), string(appendFrame(nil, helloFrame, []byte(`{"v":9}`)))} {
		conn, err := net.Dial("unix", SocketPath(r.home, "shop"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(conn, nonsense); err != nil {
			t.Fatal(err)
		}
		if kind, _, err := readFrame(conn); err == nil && kind != refusedFrame {
			t.Errorf("%q is answered with %q", nonsense, kind)
		}
		_ = conn.Close()
	}
	d := r.joins()
	d.shows("ready")
	d.types("fine\r")
	d.shows("got <fine>")
	if strings.Contains(d.text(), "<x>") {
		t.Error("what came before a hello was typed")
	}
}

// Without a terminal, or a wrapper, there is nothing to join.
func TestAttachErrors(t *testing.T) {
	t.Parallel()
	r := kept(t, echoes)
	v := r.visitor()
	v.cmd.Stdout, v.cmd.Stderr = &v.out, &v.err
	v.start()
	if code := v.ends(); code != 1 || !strings.Contains(v.err.String(), ErrNoTerminal.Error()) {
		t.Errorf("without a terminal: %d, %q", code, v.err.String())
	}
	if err := r.cmd.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-r.done
	d := r.joins()
	d.shows(ErrNobodyListens.Error())
	if code := d.ends(); code != 1 {
		t.Errorf("without a wrapper: %d", code)
	}
}
