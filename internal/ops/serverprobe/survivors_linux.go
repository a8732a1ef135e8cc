package serverprobe

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	agentprocess "github.com/outlive-mcp/outlive/internal/agents/process"
)

// leaveTime is how long descendants may take to end after their server, which is what most do.
const leaveTime = 200 * time.Millisecond

// endSurvivors returns the command lines of the processes that carry the cookie in their environment, and kills them.
// Those that are about to end are given the time.
func endSurvivors(cookie string) (commands []string) {
	left := carriers(cookie)
	for end := time.Now().Add(leaveTime); len(left) > 0 && time.Now().Before(end); left = carriers(cookie) {
		time.Sleep(leaveTime / 20)
	}
	// One that starts others while it is killed is caught by the next round.
	for round := 0; len(left) > 0 && round < 20; round++ {
		for _, pid := range left {
			if command, killed := killCarrier(pid, cookie); killed && !slices.Contains(commands, command) {
				commands = append(commands, command)
			}
		}
		time.Sleep(time.Millisecond)
		left = carriers(cookie)
	}
	return commands
}

// carriers returns the processes that have the cookie.
func carriers(cookie string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && carries(pid, cookie) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// carries reads the environment a process was started with; a zombie has none any more.
func carries(pid int, cookie string) bool {
	return slices.ContainsFunc(bytes.Split(agentprocess.Environ(pid), []byte{0}), func(kv []byte) bool { return string(kv) == cookie })
}

// killCarrier kills a process that has the cookie. The descriptor is opened before the second look, so that a process
// which got the number meanwhile is never hit.
func killCarrier(pid int, cookie string) (command string, killed bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if !carries(pid, cookie) || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return "", false
	}
	return cut(strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))), true
}
