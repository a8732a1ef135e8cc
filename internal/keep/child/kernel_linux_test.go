package child

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestUnreadIsExact(t *testing.T) {
	r := start(t, "deaf")
	r.line(t)
	want := 0
	for _, s := range []string{"one line\n", "another\n", strings.Repeat("x", 30000)} {
		if _, err := r.Stdin().WriteString(s); err != nil {
			t.Fatal(err)
		}
		want += len(s)
		if n, ok := r.Unread(); !ok || n != want {
			t.Errorf("unread %d %v, want %d", n, ok, want)
		}
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	r.wait(t)
	if n, ok := r.Unread(); !ok || n != want {
		t.Errorf("after the death: unread %d %v, want %d", n, ok, want)
	}
}

func TestChildGetsThreeBlockingDescriptorsAndASession(t *testing.T) {
	leak, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // not close-on-exec, as if inherited
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	CloseInheritedOnExec()
	r := start(t, "flags")
	out, err := io.ReadAll(r.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	r.wait(t)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if strings.Join(lines[:3], " ") != "false false false" {
		t.Errorf("non-blocking descriptors: %v", lines[:3])
	}
	if lines[len(lines)-1] != "session true" {
		t.Errorf("not a session leader: %q", lines[len(lines)-1])
	}
	for _, l := range lines[3 : len(lines)-1] {
		fd, what, _ := strings.Cut(l, " ")
		if fd > "2" && (strings.HasPrefix(what, "pipe:") || what == "/dev/null") {
			t.Errorf("leaked descriptor %s", l)
		}
	}
}

// Without a keeper the exit is seen too.
func TestWaitExit(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read x")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	go func() {
		new(tree).waitExit(cmd.Process)
		close(seen)
	}()
	select {
	case <-seen:
		t.Fatal("seen before the end")
	case <-time.After(20 * time.Millisecond):
	}
	in.Close()
	<-seen
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the status must be left for the reaper: %v", err)
	}
	new(tree).waitExit(cmd.Process) // reaped by somebody else: returns
}

func TestIdleProcessesHoldNoThread(t *testing.T) {
	threads := func() int {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before := threads()
	exited := make(chan Status, 40)
	var all []*Process
	for range cap(exited) {
		p, err := Start(Spec{Argv: []string{"/bin/sleep", "60"}}, func(s Status) { exited <- s })
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if after := threads(); after > before+8 {
		t.Errorf("%d threads before, %d after %d spawns", before, after, len(all))
	}
	for _, p := range all {
		_ = p.Kill()
		<-exited
		closeAll(p.ours)
	}
}

// A process group whose leader is outside of our PID namespace, as below unshare --pid or bwrap --unshare-pid, is inherited all the same.
func TestInheritAGroupFromOutside(t *testing.T) {
	c := exec.Command(os.Args[0])
	c.Env = withMode("inherits")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID}
	out, err := c.Output()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("no PID namespace can be made here: %v", err)
	}
	if got := strings.TrimSpace(string(out)); err != nil || got != "0" {
		t.Errorf("group %q, %v; want 0, the number here of outlive's own", got, err)
	}
}
