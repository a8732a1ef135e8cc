package agenttest

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// TB is what a test has, as far as [Start] needs it.
type TB interface {
	Helper()
	Fatal(args ...any)
	Cleanup(func())
}

// Start starts this binary in a role, in a session of its own, and returns its number and those that it names, once it says that it is
// ready. It is reaped when it ends; all of them are killed with the test. env is added to the test's own.
func Start(t TB, role, dir string, env ...string) []int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), Role+"="+role), env...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := []int{cmd.Process.Pid}
	done := make(chan struct{})
	var handles []int // which stay those of these processes, even if their PIDs are reused
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for _, fd := range handles {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			_ = unix.Close(fd)
		}
		<-done
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(line)[1:] {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, fd)
	}
	return pids
}
