package cli

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// orphans are the children of this process that it has not started itself, with their state and name, in a text.
func orphans(t *testing.T) string {
	t.Helper()
	var found []string
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("%v: %v", tasks, err)
	}
	for _, task := range tasks {
		text, _ := os.ReadFile(task) // a thread may have ended
		for _, pid := range strings.Fields(string(text)) {
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			if err != nil {
				continue
			}
			name, rest, _ := strings.Cut(string(stat), ") ")
			found = append(found, name+") "+rest[:1])
		}
	}
	return strings.Join(found, ", ")
}

// TestNoZombieIsLeft: whoever starts outlive and reaps nothing but that, such as the first process of a container, has no
// dead process of it afterwards. This process is given the orphans, and never waits for one.
func TestNoZombieIsLeft(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
		for pid, _ := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid > 0; {
			pid, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil)
		}
	}()
	closeStdin := func(u *unread) { _ = u.in.Close() }
	sigterm := func(u *unread) { _ = u.cmd.Process.Signal(unix.SIGTERM) }
	for name, c := range map[string]struct {
		verb []string
		end  func(*unread)
	}{
		"client leaves":         {[]string{"run"}, closeStdin},
		"SIGTERM":               {[]string{"run"}, sigterm},
		"server exits 0":        {[]string{"run"}, func(u *unread) { _, _ = io.WriteString(u.in, exitLine) }},
		"inherit":               {[]string{"run", "--mode", "inherit"}, closeStdin},
		"inherit, SIGTERM":      {[]string{"run", "--mode", "inherit"}, sigterm},
		"with a spare":          {[]string{"run", "--standby", "1"}, closeStdin},
		"after an upgrade":      {[]string{"run"}, upgradeAndLeave},
		"after a keeper's kill": {[]string{"run"}, killKeeperAndLeave},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUnread(t)
			u.start(false, append(c.verb, "--", u.program, mcptest.ServerArg)...)
			if text := u.asks(initializeLine); !strings.Contains(text, `"serverInfo"`) {
				t.Fatalf("answer to initialize: %s", text)
			}
			before := orphans(t)
			c.end(u)
			u.ends()
			if left := orphans(t); left != "" {
				t.Errorf("left behind: %s (while it ran: %s)", left, before)
			}
		})
	}
}

// exitLine has the scripted server exit with 0.
const exitLine = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exit","arguments":{"code":0}}}` + "\n"

func upgradeAndLeave(u *unread) {
	_ = u.cmd.Process.Signal(unix.SIGUSR2)
	await.Until(u.t, "the upgrade", func() bool { return u.upgrades() > 0 })
	_ = u.in.Close()
}

// childNamed is a child of a process, by its name.
func childNamed(t *testing.T, parent int, name string) int {
	t.Helper()
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(parent) + "/task/*/children")
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for _, field := range strings.Fields(string(text)) {
			comm, _ := os.ReadFile("/proc/" + field + "/comm")
			if pid, err := strconv.Atoi(field); err == nil && strings.TrimSpace(string(comm)) == name {
				return pid
			}
		}
	}
	t.Fatalf("process %d has no child %q", parent, name)
	return 0
}

// killKeeperAndLeave kills the keeper; the server that follows has the next one.
func killKeeperAndLeave(u *unread) {
	_ = unix.Kill(childNamed(u.t, u.cmd.Process.Pid, "outlive-keeper"), unix.SIGKILL)
	if text := u.asks(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n"); !strings.Contains(text, `"id":1,`) {
		u.t.Errorf("answer: %s", text)
	}
	_ = u.in.Close()
}
