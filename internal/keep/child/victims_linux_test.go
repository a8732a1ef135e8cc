package child

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// A victim is a server with descendants that try to survive it. Each of its processes has the token as an argument, by
// which survivors are found whatever else they have shed. It says "up" when all of them run, and then obeys one line.
var victims = []string{"group", "setsid", "daemon", "hydra", "ignore-term", "wrapper", "clobbered", "clobbered-daemon"}

// victim is the mode of the leader: the arguments are the kind and the token.
func victim(kind, token string) int {
	switch kind {
	case "group":
		descend(token, "sleeper", false)
	case "setsid":
		descend(token, "sleeper", true)
	case "daemon":
		descend(token, "forker", true)
	case "hydra":
		descend(token, "hydra", true)
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
		descend(token, "sleeper", false)
		descend(token, "sleeper", true)
	case "wrapper": // the shell stays, because there is more to do
		return wait(exec.Command("/bin/sh", "-c", `"$0" "$@"; exit $?`, os.Args[0], "group", token))
	case "clobbered":
		descendWith(exec.Command("env", "-i", noLinger, modeVar+"=sleeper", "setsid", os.Args[0], token))
	case "clobbered-daemon":
		descendWith(exec.Command("env", "-i", noLinger, modeVar+"=forker", "setsid", os.Args[0], token))
	}
	fmt.Println("up")
	order, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.TrimSpace(order) {
	case "exit":
		return 0
	case "crash":
		signal.Reset()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	linger() // the end of stdin is not obeyed
	return 1
}

func wait(c *exec.Cmd) int {
	c.Stdin, c.Stdout, c.Env = os.Stdin, os.Stdout, withMode("victim")
	if c.Run() != nil {
		return 1
	}
	return 0
}

// descend starts a process of another mode and waits until it says that it is up.
func descend(token, mode string, setsid bool) {
	c := exec.Command(os.Args[0], token)
	c.Env = withMode(mode)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: setsid}
	descendWith(c)
}

func descendWith(c *exec.Cmd) {
	r, w, err := os.Pipe()
	if err != nil {
		os.Exit(3)
	}
	c.Stdout = w
	if c.Start() != nil {
		os.Exit(3)
	}
	_ = w.Close()
	_, _ = bufio.NewReader(r).ReadString('\n')
}

// hydra forks a copy of itself into a new session every 2 ms and dies. The fork knows no Go runtime: it may use system
// calls and nothing else. It gives up after a minute, should nobody catch it: others are started after it, which takes time on a
// busy machine.
//
//go:norace
//go:nosplit
func hydra() {
	pause := syscall.Timespec{Nsec: 2e6}
	for range 30_000 {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 || pid != 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		syscall.RawSyscall(syscall.SYS_NANOSLEEP, addressOf(&pause), 0, 0)
	}
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
}

// attack is a mode of those who do not want to die and of those who start them.
func attack(mode string, args []string) (code int, known bool) {
	switch mode {
	case "victim":
		return victim(args[0], args[1]), true
	case "supervisor":
		return supervisor(args), true
	case "sleeper":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("up")
		linger()
	case "forker": // the daemon's parent is gone when it runs
		descend(args[0], "sleeper", true) // its end says that all is up
	case "hydra":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("up")
		hydra()
	case "inherits": // starts a process in its own group, which tells the number of that
		PrepareToInherit()
		ends := make(chan Status, 1)
		if _, err := Start(Spec{Argv: []string{os.Args[0]}, Env: withMode("tells-group"), Inherit: true}, func(s Status) { ends <- s }); err != nil {
			fmt.Println(err)
			return 1, true
		}
		<-ends
	case "tells-group":
		fmt.Println(unix.Getpgrp())
	default:
		return 0, false
	}
	return 0, true
}

// supervisor is the mode that is an outlive of its own: it starts the victims that the arguments name, says what runs,
// and tells of each end. The first argument is the token, which each victim gets with its kind; the second is the kill
// mode.
func supervisor(args []string) int {
	ends := make(chan Status, len(args))
	for _, kind := range args[2:] {
		p, err := Start(Spec{Argv: []string{os.Args[0], kind, args[0] + kind + "."}, Env: withMode("victim"), KillMode: KillMode(args[1])},
			func(s Status) { ends <- s })
		if err != nil {
			fmt.Println(err)
			return 1
		}
		_, _ = bufio.NewReader(p.Stdout()).ReadString('\n')
	}
	fmt.Println("keeper", keeperPID())
	time.AfterFunc(time.Minute, func() { close(ends) })
	for s := range ends {
		fmt.Println("end", s.Code, s.Signal)
	}
	return 0
}

// keeperPID is the keeper's of this process, 0 when there is none.
func keeperPID() int {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	if keeping.now == nil {
		return 0
	}
	return keeping.now.proc.Pid
}

// survivors are the running processes with that argument, with their command lines. The newest come first, because a
// hydra's heads live for two milliseconds; and there are several looks.
func survivors(token string) []string {
	found := make(map[string]string)
	for range 5 {
		entries, _ := os.ReadDir("/proc")
		slices.SortFunc(entries, func(a, b os.DirEntry) int {
			return cmp.Or(cmp.Compare(len(b.Name()), len(a.Name())), cmp.Compare(b.Name(), a.Name()))
		})
		for _, e := range entries {
			cmdline, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // a zombie's is empty
			if bytes.Contains(cmdline, []byte(token)) {
				found[e.Name()] = e.Name() + " " + string(bytes.ReplaceAll(cmdline, []byte{0}, []byte(" ")))
			}
		}
	}
	return slices.Sorted(maps.Values(found))
}

// newToken is an argument that no other process has. What should have died dies at the end of the test.
func newToken(t *testing.T) string {
	t.Helper()
	token := "victim-" + rand.Text()
	t.Cleanup(func() {
		await.Value(t, "nobody of the test is left", func() ([]string, bool) {
			left := survivors(token)
			for _, s := range left {
				pid, _, _ := strings.Cut(s, " ")
				if n, err := strconv.Atoi(pid); err == nil {
					_ = unix.Kill(n, unix.SIGKILL)
				}
			}
			return left, len(left) == 0
		})
	})
	return token
}

// noSurvivors waits for the last to go, which is promised within limit, and returns how long that took.
func noSurvivors(t *testing.T, token string, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	limit = tier.Limit(limit)
	for {
		left := survivors(token)
		took := time.Since(began)
		switch {
		case len(left) == 0:
			return took
		case took > limit:
			t.Fatalf("survivors after %v:\n%s", took, strings.Join(left, "\n"))
		}
		time.Sleep(500 * time.Microsecond)
	}
}
