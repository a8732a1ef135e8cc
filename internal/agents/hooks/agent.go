package hooks

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/process"
)

// shells are programs that may be between a CLI and its hook.
var shells = []string{"sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "cmd", "powershell", "pwsh", "env", "timeout", "nice"}

// maxShells is how many parents are looked at.
const maxShells = 6

// agentAbove returns the first process from parent upwards that is not a shell: the CLI that called the hook. Its PID is 0
// when there is none.
func agentAbove(parent int) process.Identity { return firstNoShell(parent, process.System{}.Look) }

func firstNoShell(pid int, look func(int) (process.Process, error)) process.Identity {
	for range maxShells {
		if pid <= 1 {
			break
		}
		p, err := look(pid)
		if err != nil {
			break
		}
		name := strings.ToLower(strings.TrimSuffix(filepath.Base(p.Program), ".exe"))
		if !slices.Contains(shells, strings.TrimPrefix(name, "-")) {
			return p.Identity
		}
		pid = p.Parent
	}
	return process.Identity{}
}

// lives reports whether a process still exists. It is true if the process was never found.
func lives(id process.Identity) bool {
	if id.PID == 0 {
		return true
	}
	now, err := process.System{}.Look(id.PID)
	return err == nil && now.Start == id.Start
}
