package faults

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/proc"
)

// ofServer stands in a descendant's arguments before the pid of its server.
const ofServer = "of-server="

// process is one running process as /proc shows it.
type process struct {
	pid, parent int
	state       byte
	born        string // together with the pid it is nobody else's
	argv        []string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, strings.Join(p.argv, " ")) }

// readProcess is false for what is gone or a zombie.
func readProcess(pid int) (process, bool) {
	stat, alive := proc.StatOf(pid)
	argv := proc.Argv(pid)
	return process{pid: pid, parent: stat.Parent, state: stat.State, born: stat.Born, argv: argv}, alive && len(argv) > 0
}

// processes are those that which takes.
func processes(which func(process) bool) (found []process) {
	for _, pid := range proc.All() {
		if p, ok := readProcess(pid); ok && which(p) {
			found = append(found, p)
		}
	}
	return found
}

// withToken are the processes that have the token among their arguments, but for those of the pids given.
func withToken(token string, but ...int) []process {
	return processes(func(p process) bool {
		return !slices.Contains(but, p.pid) && slices.ContainsFunc(p.argv, func(a string) bool { return strings.Contains(a, token) })
	})
}

// still are those of old that are there.
func still(old []process) []process {
	var left []process
	for _, o := range old {
		if p, ok := readProcess(o.pid); ok && p.born == o.born {
			left = append(left, p)
		}
	}
	return left
}

// familyOf selects, of a cell's processes, a server, the wrappers above it and everything it started.
func familyOf(all []process, server int) []process {
	above := map[int]bool{}
	for pid := server; pid > 1; {
		at := slices.IndexFunc(all, func(p process) bool { return p.pid == pid })
		if at < 0 {
			break
		}
		above[pid] = true
		pid = all[at].parent
	}
	mark := ofServer + strconv.Itoa(server)
	return slices.DeleteFunc(slices.Clone(all), func(p process) bool { return !above[p.pid] && !slices.Contains(p.argv, mark) })
}

// look is the pause between two looks at /proc.
const look = 500 * time.Microsecond

// untilNone looks until left finds nobody or the limit has passed, and returns who is left and how long after begin the
// last was gone. Nobody must be found twice: a list read while processes fork may lack some.
func untilNone(begin time.Time, limit time.Duration, left func() []process) ([]process, time.Duration) {
	var now []process
	for empty, end := 0, time.Now().Add(limit); time.Now().Before(end); time.Sleep(look) {
		gone := time.Since(begin)
		if now = left(); len(now) > 0 {
			empty = 0
		} else if empty++; empty == 2 {
			return nil, gone
		}
	}
	return now, time.Since(begin)
}

// sweep kills what still has the token.
func sweep(token string) {
	_, _ = untilNone(time.Now(), 5*time.Second, func() []process {
		left := withToken(token, os.Getpid())
		for _, p := range left {
			_ = unix.Kill(p.pid, unix.SIGKILL)
		}
		return left
	})
}

func lines(list []process) []string {
	var out []string
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}
