package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// startTree runs a server in inherit mode that has a daemon in a session of its own and a helper, and says who they are:
// the server, the daemon, the helper.
func startTree(t *testing.T, u *unread, flags ...string) (pids []int) {
	t.Helper()
	script := `setsid sleep 1000 </dev/null >/dev/null 2>&1 & d=$!; sleep 1001 </dev/null >/dev/null 2>&1 & echo $$ $d $!; read -r l; exec sleep 1002`
	args := append([]string{"run", "--mode", "inherit", "--name", "tree"}, flags...)
	u.start(true, append(args, "--", "sh", "-c", script)...)
	return nextTree(t, u)
}

// nextTree waits for the next server of startTree, which says who it and its own are.
func nextTree(t *testing.T, u *unread) (pids []int) {
	t.Helper()
	line, err := u.out.ReadString('\n')
	if err != nil {
		t.Fatal("no server says who it is:", err)
	}
	for _, word := range strings.Fields(line) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// gone waits until a process is no more, or dead and not reaped, which by then is not outlive's to do.
func gone(t *testing.T, pid int) {
	t.Helper()
	await.Value(t, fmt.Sprintf("process %d has ended", pid), func() (string, bool) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		return string(stat), err != nil || strings.HasPrefix(rest, "Z")
	})
}

// TestNothingSurvivesInheritMode: whoever is killed, the server, its helpers and its daemons end, as in the usual mode; and
// the server is in outlive's own process group, as the mode wants it.
func TestNothingSurvivesInheritMode(t *testing.T) {
	t.Run("outlive is killed", func(t *testing.T) {
		u := newUnread(t)
		pids := startTree(t, u)
		group, err := unix.Getpgid(pids[0])
		if own, _ := unix.Getpgid(u.cmd.Process.Pid); err != nil || group != own {
			t.Errorf("the server is in group %d, outlive in %d, %v", group, own, err)
		}
		_ = u.cmd.Process.Kill()
		for _, pid := range pids {
			gone(t, pid)
		}
	})
	t.Run("the keeper is killed", func(t *testing.T) {
		u := newUnread(t)
		pids := startTree(t, u)
		_ = unix.Kill(childNamed(t, u.cmd.Process.Pid, "outlive-keeper"), unix.SIGKILL)
		for _, pid := range pids {
			gone(t, pid)
		}
		again := nextTree(t, u)
		_ = u.cmd.Process.Kill()
		for _, pid := range again {
			gone(t, pid)
		}
	})
	t.Run("the server is killed", func(t *testing.T) {
		u := newUnread(t)
		pids := startTree(t, u)
		_ = unix.Kill(pids[0], unix.SIGKILL)
		for _, pid := range pids {
			gone(t, pid)
		}
	})
	t.Run("daemons on purpose", func(t *testing.T) {
		u := newUnread(t)
		pids := startTree(t, u, "--kill-mode", "group")
		left := pids[1:]
		defer func() {
			_ = u.cmd.Process.Kill()
			for _, pid := range left { // which outlive leaves alone
				_ = unix.Kill(pid, unix.SIGKILL)
				gone(t, pid)
			}
		}()
		_ = unix.Kill(pids[0], unix.SIGKILL)
		gone(t, pids[0])
		left = append(left, nextTree(t, u)...)
		if err := unix.Kill(pids[1], 0); err != nil {
			t.Errorf("its daemon: %v", err)
		}
	})
}

// TestInheritModeEndsWithItsClient: a server that goes on although its client has left is ended, as in the usual mode.
func TestInheritModeEndsWithItsClient(t *testing.T) {
	t.Parallel() // the server is given its time to end by itself
	u := newUnread(t)
	pids := startTree(t, u)
	_ = u.in.Close()
	u.ends()
	for _, pid := range pids {
		gone(t, pid)
	}
}
