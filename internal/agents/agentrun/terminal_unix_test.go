//go:build unix

package agentrun

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// desk is a person's terminal with a wrapper in it.
type desk struct {
	*testRun
	keyboard *os.File // the terminal's other side
	slave    *os.File

	mu     sync.Mutex
	screen bytes.Buffer
}

// atDesk starts a wrapper in a terminal of 30 rows and 90 columns.
func atDesk(t *testing.T, command ...string) *desk {
	t.Helper()
	return sitDown(t, wrap(t, command...))
}

// atShell starts a script in such a terminal; the wrapper is the script's to start.
func atShell(t *testing.T, script string, args ...string) *desk {
	t.Helper()
	r := wrap(t)
	shell := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
	shell.Env = r.cmd.Env
	r.cmd = shell
	return sitDown(t, r)
}

func sitDown(t *testing.T, r *testRun) *desk {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if master, err = pollable(master); err != nil { // closing it ends its reader
		t.Fatal(err)
	}
	d := &desk{testRun: r, keyboard: master, slave: slave}
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 30, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = slave, slave, slave
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			d.mu.Lock()
			d.screen.Write(buffer[:n])
			d.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close()
		<-read
	})
	d.start()
	return d
}

func (d *desk) types(keys string) {
	d.t.Helper()
	if _, err := io.WriteString(d.keyboard, keys); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.screen.String()
}

// shows waits for a text on the screen.
func (d *desk) shows(text string) {
	d.t.Helper()
	await.Value(d.t, fmt.Sprintf("%q is shown", text), func() (string, bool) {
		all := d.text()
		return all, strings.Contains(all, text)
	})
}

func (d *desk) settings() unix.Termios {
	d.t.Helper()
	s, err := settings(d.slave)
	if err != nil {
		d.t.Fatal(err)
	}
	return s.Termios
}

// raw waits until the terminal is raw, or is not.
func (d *desk) raw(want bool) {
	d.t.Helper()
	await.Until(d.t, fmt.Sprint("that the terminal is raw becomes ", want), func() bool { return (d.settings().Lflag&unix.ICANON == 0) == want })
}

// The agent has a terminal like ours: its size, its keys, its line discipline; ours is as before afterwards.
func TestTerminalPassesKeys(t *testing.T) {
	d := atDesk(t, "sh", "-c", `test -t 0 && test -t 1 && test -t 2 && stty size; read line; echo "got <$line>"; stty raw -echo; printf 'keys'; head -c 4 | od -An -tx1; exit 4`)
	d.shows("30 90")
	d.raw(true)
	d.types("hello\r")
	d.shows("got <hello>")
	d.shows("keys")
	d.types("\x03\x1a\r\x1b") // Ctrl-C, Ctrl-Z, Enter and Escape as they are
	if code := d.ends(); code != 4 {
		t.Errorf("exit status %d, want 4", code)
	}
	d.shows("03 1a 0d 1b")
	d.raw(false)
	if text := d.text(); strings.Count(text, "hello") != 2 {
		t.Errorf("a typed line is echoed once: %q", text)
	}
}

func TestTerminalKeysAreSignals(t *testing.T) {
	d := atDesk(t, "sh", "-c", `trap 'echo interrupted; exit 6' INT; echo ready; while :; do sleep 0.05; done`)
	d.shows("ready")
	d.raw(true)
	d.types("\x03")
	if code := d.ends(); code != 6 {
		t.Errorf("exit status %d, want 6", code)
	}
	d.raw(false)
}

func TestTerminalIsResized(t *testing.T) {
	d := atDesk(t, "sh", "-c", `trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done`)
	d.shows("ready")
	if err := pty.Setsize(d.slave, &pty.Winsize{Rows: 44, Cols: 133}); err != nil {
		t.Fatal(err)
	}
	d.shows("44 133")
}

// What a terminal program shows is in the report at once: title, its last lines.
func TestTerminalReport(t *testing.T) {
	d := atDesk(t, "sh", "-c", `printf '\033]0;⠋ shop\007working'; read x; printf '\033]0;[ ! ] Action Required | shop\007\033]9;needs you\033\\\033[2J\033[5;3HAllow this command?'; read x`)
	d.until("a busy title", func(r Report) bool { return r.TitleState == agentcli.Busy && r.Title == "⠋ shop" })
	d.types("\r")
	began := time.Now()
	report := d.until("a waiting title", func(r Report) bool { return r.TitleState == agentcli.Waiting })
	if report.OutputAt.IsZero() {
		t.Errorf("report %+v", report)
	}
	t.Logf("in the report after %v", time.Since(began))
	report = d.until("the question", said("Allow this command?"))
	if diff := cmp.Diff([]string{"Allow this command?"}, report.LastLines); diff != "" {
		t.Error(diff)
	}
	d.types("\r")
	d.ends()
}

// Whatever ends the agent, the terminal is set back, also what the agent had switched on.
func TestTerminalIsSetBack(t *testing.T) {
	d := atDesk(t, "sh", "-c", `stty raw -echo; printf '\033[?1049h\033[?25l\033[?1000hready'; kill -KILL $$`)
	if code := d.ends(); code != 137 {
		t.Errorf("exit status %d, want 137", code)
	}
	d.raw(false)
	d.shows("\x1b[?1000l\x1b[?25h\x1b[?1049l")

	d = atDesk(t, "sh", "-c", `echo ready; exec sleep 300`)
	d.shows("ready")
	before := d.settings()
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := d.ends(); code != 143 {
		t.Errorf("exit status %d, want 143", code)
	}
	d.raw(false)
	if after := d.settings(); after.Iflag == before.Iflag {
		t.Error("the terminal was not raw before")
	}
}

// A wrapper that is killed takes its agent's terminal along.
func TestKilledWrapperHangsUp(t *testing.T) {
	d := atDesk(t, "sh", "-c", `echo ready; exec sleep 300`)
	d.shows("ready")
	report := d.until("a first line", said("ready"))
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.ends()
	await.Until(t, "the agent has ended", func() bool { return !lives(report.Process()) })
}

// A terminal window that is closed is heard of by the agent, and how it took it is noted.
func TestTerminalGoes(t *testing.T) {
	d := atDesk(t, "sh", "-c", `trap 'exit 3' HUP; echo ready; while :; do sleep 0.05; done`)
	d.shows("ready")
	_ = d.slave.Close()
	if err := d.keyboard.Close(); err != nil {
		t.Fatal(err)
	}
	if report := d.until("an end", func(r Report) bool { return r.Exit != nil }); report.Exit.Code != 3 {
		t.Errorf("exit %+v, want the trap's 3", *report.Exit)
	}
	if code := d.ends(); code != 3 {
		t.Errorf("exit status %d, want 3", code)
	}
}

// A shell can suspend the wrapper, by a signal or by the agent's own stop, and continue both.
func TestSuspend(t *testing.T) {
	for _, how := range []string{"kill -TSTP wrapper", "kill -STOP agent"} {
		// The shell in between is what makes the wrapper a job.
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		agent := `i=0; while :; do i=$((i+1)); echo "tick $i"; sleep 0.02; done`
		d := atShell(t, `set -m; "$1" sh -c "$2"; echo "suspended"; read x; fg; echo "over"; exit 0`, self, agent)
		d.shows("tick 3")
		report := d.until("ticks", said("tick"))
		if how == "kill -STOP agent" {
			err = syscall.Kill(report.PID, syscall.SIGSTOP)
		} else {
			err = syscall.Kill(report.Wrapper.PID, syscall.SIGTSTP)
		}
		if err != nil {
			t.Fatal(err)
		}
		d.shows("suspended")
		d.raw(false)
		before := strings.Count(d.text(), "tick")
		d.types("\r")
		await.Value(t, how+": it goes on", func() (string, bool) {
			all := d.text()
			return all, strings.Count(all, "tick") >= before+5
		})
		d.raw(true)
		if err := syscall.Kill(report.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		d.shows("over")
		d.ends()
	}
}

// A key at the wrapper's terminal is told in the report, with when; what the terminal says by itself is none.
func TestAKeyIsTold(t *testing.T) {
	t.Parallel()
	d := atDesk(t, "sh", "-c", "stty raw -echo; echo first; head -c 9 >/dev/null; echo second; head -c 1 >/dev/null; echo third; sleep 60")
	d.shows("first")
	d.types("\x1b[I\x1b[7;7R") // 3 and 6 bytes
	d.shows("second")
	if r := d.until("the second line", func(r Report) bool { return strings.Contains(strings.Join(r.LastLines, " "), "second") }); !r.TypedAt.IsZero() {
		t.Errorf("typed at %v", r.TypedAt)
	}
	before := time.Now()
	d.types("y")
	if r := d.until("a key", func(r Report) bool { return !r.TypedAt.IsZero() }); r.TypedAt.Before(before) {
		t.Errorf("typed at %v, before %v", r.TypedAt, before)
	}
}
