package faults

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
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
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The command, in parentheses, may hold anything; state and parent follow it, and the 22nd field is the birth.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return process{}, false
	}
	parent, err := strconv.Atoi(string(f[1]))
	if err != nil {
		return process{}, false
	}
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(cmdline) == 0 {
		return process{}, false
	}
	return process{pid: pid, parent: parent, state: f[0][0], born: string(f[19]),
		argv: strings.Split(strings.TrimSuffix(string(cmdline), "\x00"), "\x00")}, true
}

// processes are those that which takes.
func processes(which func(process) bool) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
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
