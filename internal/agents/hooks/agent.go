package hooks

import (
	"path/filepath"
	"slices"
	"strings"
)

// procInfo identifies a running process and its parent.
type procInfo struct {
	pid    int
	name   string // of its program
	parent int
	start  uint64 // in the system's own units; with the pid it identifies the process
}

// shells are programs that may be between a CLI and its hook.
var shells = []string{"sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "cmd", "powershell", "pwsh", "env", "timeout", "nice"}

// maxShells is how many parents are looked at.
const maxShells = 6

// agentAbove returns the first process from parent upwards that is not a shell: the CLI that called the hook. Its pid
// is 0 when there is none.
func agentAbove(parent int) procInfo { return firstNoShell(parent, look) }

func firstNoShell(pid int, look func(int) (procInfo, bool)) procInfo {
	for range maxShells {
		p, ok := look(pid)
		if pid <= 1 || !ok {
			break
		}
		name := strings.ToLower(strings.TrimSuffix(filepath.Base(p.name), ".exe"))
		if !slices.Contains(shells, strings.TrimPrefix(name, "-")) {
			return p
		}
		pid = p.parent
	}
	return procInfo{}
}

// lives reports whether the process still exists. It is true if the process was never found.
func (l procInfo) lives() bool {
	if l.pid == 0 {
		return true
	}
	now, ok := look(l.pid)
	return ok && now.start == l.start
}
