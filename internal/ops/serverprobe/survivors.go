package serverprobe

import (
	"context"
	"slices"
	"strings"
	"time"

	agentprocess "github.com/outlive-mcp/outlive/internal/agents/process"
)

// leaveTime is how long descendants may take to end after their server, which is what most do. When they are asked to end, they have
// as long again.
const leaveTime = 200 * time.Millisecond

// endSurvivors returns the command lines of the processes that carry the token in their environment, and ends them. Those that are
// about to end are given the time. It finds none on macOS, which shows no other process's environment, and on Windows, where the
// job ends everything with the server.
func endSurvivors(run string) (commands []string) {
	if !agentprocess.FindsStarts {
		return nil
	}
	left := carriers(run)
	for end := time.Now().Add(leaveTime); len(left) > 0 && time.Now().Before(end); left = carriers(run) {
		time.Sleep(leaveTime / 20)
	}
	for _, pid := range left {
		command := cut(strings.TrimSpace(strings.Join(agentprocess.System{}.Args(pid), " ")))
		if command != "" && !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	if len(left) > 0 {
		// What cannot be ended has been told all the same.
		_ = agentprocess.System{}.Stop(context.Background(), agentprocess.Target{Runs: []string{run}, Grace: leaveTime})
	}
	return commands
}

// carriers returns the living processes that have the token.
func carriers(run string) (pids []int) {
	for _, p := range (agentprocess.System{}).All() {
		if (agentprocess.System{}).Variable(p.PID, agentprocess.RunVariable) == run {
			pids = append(pids, p.PID)
		}
	}
	return pids
}
