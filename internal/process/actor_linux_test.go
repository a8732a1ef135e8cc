package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if actor := os.Getenv("OUTLIVE_TEST_ACTOR"); actor != "" {
		os.Exit(act(strings.Fields(actor)))
	}
	goleak.VerifyTestMain(m)
}

// act is the test binary in another role: an agent that says "ready" and lives on, and
//
//	stubborn   ignores SIGTERM
//	child      has a child
//	away       has one in a session of its own, whose parent is gone
func act(role []string) int {
	line := "ready"
	for _, k := range role[1:] {
		switch k {
		case "stubborn":
			signal.Ignore(syscall.SIGTERM)
		case "child":
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "OUTLIVE_TEST_ACTOR=agent stubborn")
			if cmd.Start() != nil {
				return 3
			}
			line += " " + strconv.Itoa(cmd.Process.Pid)
		case "away":
			// A shell in between ends at once, so the grandchild's parent is init, and its session its own.
			out, err := exec.Command("sh", "-c", `OUTLIVE_TEST_ACTOR="agent stubborn" setsid "$0" </dev/null >/dev/null 2>&1 & echo $!`, os.Args[0]).Output()
			if err != nil {
				return 3
			}
			line += " " + strings.TrimSpace(string(out))
		}
	}
	fmt.Println(line)
	time.Sleep(2 * time.Minute) // nobody of a test that went wrong stays for ever
	return 0
}

// agent starts one, reaps it when it ends, and returns its number and those that it names.
func agent(t *testing.T, actor string, dir string, env ...string) []int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "OUTLIVE_TEST_ACTOR="+actor), env...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{cmd.Process.Pid}
	for _, word := range strings.Fields(line)[1:] {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		for _, pid := range pids {
			if id := identityOf(pid); id != (Identity{}) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		<-done
	})
	return pids
}

// identityOf is the zero identity for the dead.
func identityOf(pid int) Identity {
	p, err := (System{}).Look(pid)
	if err != nil {
		return Identity{}
	}
	return p.Identity
}

var asNobody = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
