package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sharers is how many sessions TestSharedMemory has.
const sharers = 10

// TestSharedMemory: ten sessions of one server, each with a process of its own and all with one: that takes less memory. How much is
// measured by go run ./bench sharing.
func TestSharedMemory(t *testing.T) {
	needFull(t, "it measures the memory of eighty sessions")
	needOutlive(t)
	npm := func(name string, args ...string) server {
		script := filepath.Join(tools.root, "node_modules", "@modelcontextprotocol", name, "dist", "index.js")
		return server{name: name, argv: append([]string{tools.node, script}, args...), match: script, legacy: true}
	}
	for _, c := range []struct {
		server server
		tool   string
	}{
		{npm("server-filesystem", tools.root), "list_allowed_directories"}, {npm("server-memory"), "read_graph"},
		{servers()["py"], "echo"}, {servers()["go-legacy"], "echo"},
	} {
		name, srv := c.server.name, c.server
		var private [2]int
		for shared := range 2 {
			w := newWorkspace(t)
			argv := append([]string{tools.outlive, "run", "--"}, srv.argv...)
			if shared == 1 {
				argv = sharedRun(srv)
			}
			var all []*session
			for range sharers {
				s := w.join(t, clients()["go-legacy"], argv...)
				s.server = srv
				if r := s.call(t, c.tool, map[string]any{"text": "it runs"}); r.Error != nil || r.tool().IsError {
					t.Fatalf("%s: %s", name, r)
				}
				all = append(all, s)
			}
			if n, want := len(w.serverPIDs(srv)), []int{sharers, 1}[shared]; n != want {
				t.Errorf("%s: %d server processes, want %d", name, n, want)
			}
			processes := w.processes("")
			for pid := range processes {
				private[shared] += privateKiB(t, pid)
			}
			t.Logf("%s, %s: %d processes, %d MiB private", name, []string{"a process each", "--shared"}[shared], len(processes), private[shared]>>10)
			for _, s := range all {
				s.depart(t)
			}
			if shared == 1 && !eventually(func() bool { return len(w.daemons()) == 0 }) {
				t.Error("the daemon goes on without clients")
			}
			w.noneLeft(t)
		}
		if private[1] >= private[0] {
			t.Errorf("%s: shared takes %d KiB, a process each %d KiB", name, private[1], private[0])
		}
	}
}

// privateKiB is the memory of a process that no other has.
func privateKiB(t *testing.T, pid int) (sum int) {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && strings.HasPrefix(fields[0], "Private_") {
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}
