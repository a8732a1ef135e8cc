//go:build unix

package child

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// running is a started child and the channel its end arrives on.
type running struct {
	*Process
	exited chan Status
	lines  *bufio.Reader
}

func start(t *testing.T, mode string, args ...string) *running {
	t.Helper()
	exited := make(chan Status, 2) // room for a second call, which would be a fault
	p, err := Start(Spec{
		Argv: append([]string{os.Args[0]}, args...),
		Env:  withMode(mode),
	}, func(s Status) { exited <- s })
	if err != nil {
		t.Fatalf("start %s: %v", mode, err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		closeAll(p.ours)
	})
	return &running{p, exited, bufio.NewReader(p.Stdout())}
}

func (r *running) wait(t *testing.T) Status {
	t.Helper()
	select {
	case s := <-r.exited:
		return s
	case <-time.After(2 * time.Minute):
		t.Fatal("onExit was not called")
		return Status{}
	}
}

func (r *running) line(t *testing.T) string {
	t.Helper()
	s, err := r.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("read a line: %v", err)
	}
	return strings.TrimSuffix(s, "\n")
}

func TestStatus(t *testing.T) {
	tests := []struct {
		mode, arg string
		want      Status
	}{
		{"exit", "0", Status{}},
		{"exit", "42", Status{Code: 42}},
		{"exit", "255", Status{Code: 255}},
		{"signal", "9", Status{Code: 137, Signalled: true, Signal: "killed"}},
		{"signal", "15", Status{Code: 143, Signalled: true, Signal: "terminated"}},
	}
	for _, tt := range tests {
		t.Run(tt.mode+tt.arg, func(t *testing.T) {
			got := start(t, tt.mode, tt.arg).wait(t)
			if d := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Status{}, "Uptime", "MaxRSS", "CPU")); d != "" {
				t.Errorf("status (-want +got):\n%s", d)
			}
			if got.Uptime <= 0 || got.MaxRSS < 1<<18 || got.CPU <= 0 {
				t.Errorf("usage not told: %+v", got)
			}
		})
	}
}

func TestEverythingWrittenBeforeTheEndIsReadable(t *testing.T) {
	want := strings.Repeat("0123456789abcde\n", 256)
	for range manyEnds {
		r := start(t, "write")
		r.wait(t) // read only after the process is gone and reaped
		out, err := io.ReadAll(r.Stdout())
		if err != nil || string(out) != want {
			t.Fatalf("read %d of %d bytes, error %v", len(out), len(want), err)
		}
		if errOut, _ := io.ReadAll(r.Stderr()); string(errOut) != "to stderr\n" {
			t.Fatalf("stderr: %q", errOut)
		}
		closeAll(r.ours)
	}
}

func TestStreams(t *testing.T) {
	r := start(t, "cat")
	if _, err := r.Stdin().WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := r.line(t); got != "hello" {
		t.Errorf("echo: %q", got)
	}
	_ = r.Stdin().Close()
	if _, err := r.lines.ReadByte(); err != io.EOF {
		t.Errorf("the child's end of stdout is still held: %v", err)
	}
	if s := r.wait(t); s.Code != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestGrandchildHoldingStdoutIsKilledAtOnce(t *testing.T) {
	r := start(t, "family", "leave")
	pid, _ := strconv.Atoi(r.line(t))
	s := r.wait(t)
	if s.Code != 0 || s.Signalled {
		t.Errorf("the leader's status must be its own: %+v", s)
	}
	gone(t, pid)
	if rest, err := io.ReadAll(r.lines); err != nil || len(rest) > 0 {
		t.Errorf("stdout must end: %q, %v", rest, err)
	}
}

func TestKillReachesTheTree(t *testing.T) {
	for _, mode := range []string{"family", "double", "setsid"} {
		t.Run(mode, func(t *testing.T) {
			r := start(t, mode, "stay")
			pid, _ := strconv.Atoi(r.line(t))
			if pid <= 0 {
				t.Fatal("no grandchild")
			}
			if err := r.Kill(); err != nil {
				t.Fatal(err)
			}
			if s := r.wait(t); s.Code != 137 || s.Signal != "killed" {
				t.Errorf("status %+v", s)
			}
			gone(t, pid)
			if err := r.Kill(); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("kill after the end: %v", err)
			}
			if err := r.Terminate(); !errors.Is(err, os.ErrProcessDone) {
				t.Errorf("terminate after the end: %v", err)
			}
		})
	}
}

// gone waits until pid does not run any more; a zombie waiting for init does not run.
func gone(t *testing.T, pid int) {
	t.Helper()
	await.Until(t, fmt.Sprintf("process %d runs no more", pid), func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid)
	})
}

func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && bytes.Contains(b, []byte(") Z "))
}

func TestTerminate(t *testing.T) {
	t.Run("handled", func(t *testing.T) {
		r := start(t, "term")
		r.line(t)
		if err := r.Terminate(); err != nil {
			t.Fatal(err)
		}
		if s := r.wait(t); s.Code != 7 || s.Signalled {
			t.Errorf("status %+v", s)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		r := start(t, "stop")
		r.line(t)
		await.Until(t, "it is stopped", func() bool { return stopped(r.PID()) })
		if err := r.Terminate(); err != nil {
			t.Fatal(err)
		}
		if s := r.wait(t); s.Signal != "terminated" {
			t.Errorf("status %+v", s)
		}
	})
	t.Run("ignored", func(t *testing.T) {
		r := start(t, "ignore-term")
		r.line(t)
		if err := r.Terminate(); err != nil {
			t.Fatal(err)
		}
		if err := r.Kill(); err != nil {
			t.Fatal(err)
		}
		if s := r.wait(t); s.Signal != "killed" {
			t.Errorf("status %+v", s)
		}
	})
}

func stopped(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || bytes.Contains(b, []byte(") T ")) // no /proc: the sleep was enough
}

func TestOnExitOnceWithoutDescriptorOrGoroutineGrowth(t *testing.T) {
	gone := make(chan Status, 1)
	first, err := Start(Spec{Argv: []string{"/bin/true"}}, func(s Status) { gone <- s }) // the first start also starts the keeper
	if err != nil {
		t.Fatal(err)
	}
	<-gone
	closeAll(first.ours)
	before, goroutines := openDescriptors(), runtime.NumGoroutine()
	var worst time.Duration
	var total time.Duration
	const spawns = 500
	for range spawns {
		exited := make(chan Status, 2)
		began := time.Now()
		p, err := Start(Spec{Argv: []string{"/bin/true"}}, func(s Status) { exited <- s })
		took := time.Since(began)
		total += took
		worst = max(worst, took)
		if err != nil {
			t.Fatal(err)
		}
		if s := <-exited; s.Code != 0 {
			t.Fatalf("status %+v", s)
		}
		closeAll(p.ours)
		if len(exited) > 0 {
			t.Fatal("onExit called twice")
		}
	}
	t.Logf("spawn: mean %v, worst %v", total/spawns, worst)
	if after := openDescriptors(); after > before+2 {
		t.Errorf("descriptors: %d before, %d after", before, after)
	}
	if after := runtime.NumGoroutine(); after > goroutines+2 {
		t.Errorf("goroutines: %d before, %d after", goroutines, after)
	}
}

func openDescriptors() int {
	entries, _ := os.ReadDir("/dev/fd")
	return len(entries)
}

func TestInherit(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	oldOut := os.Stdout
	os.Stdout = w
	exited := make(chan Status, 1)
	p, err := Start(Spec{Argv: []string{"/bin/sh", "-c", "echo out; exit 3"}, Inherit: true}, func(s Status) { exited <- s })
	os.Stdout = oldOut
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := io.ReadAll(r); string(out) != "out\n" {
		t.Errorf("stdout %q", out)
	}
	if s := <-exited; s.Code != 3 {
		t.Errorf("status %+v", s)
	}
	if p.Stdin() != nil || p.Stdout() != nil || p.Stderr() != nil {
		t.Error("there are no pipes when descriptors are inherited")
	}
	if _, ok := p.Unread(); ok {
		t.Error("nothing is known of an inherited stdin")
	}
}

func TestInheritKillLeavesOurGroupAlone(t *testing.T) {
	exited := make(chan Status, 1)
	p, err := Start(Spec{Argv: []string{"/bin/sleep", "60"}, Inherit: true}, func(s Status) { exited <- s })
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Terminate(); err != nil {
		t.Fatal(err)
	}
	if s := <-exited; s.Signal != "terminated" {
		t.Errorf("status %+v", s)
	}
}
