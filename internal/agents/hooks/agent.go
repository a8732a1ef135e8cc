package hooks

import (
	"path/filepath"
	"slices"
	"strings"
)

// lineage is what is known of a living process.
type lineage struct {
	pid    int
	name   string // of its program
	parent int
	start  uint64 // in the system's own units: with pid it is this process and no later one
}

// shells stand between a CLI and its hook.
var shells = []string{"sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "cmd", "powershell", "pwsh", "env", "timeout", "nice"}

// maxShells bounds how far up is looked.
const maxShells = 6

// agentAbove is the first process from parent upwards that is not a shell: the CLI that called the hook. Its pid is 0 when
// there is none.
func agentAbove(parent int) lineage { return firstNoShell(parent, look) }

func firstNoShell(pid int, look func(int) (lineage, bool)) lineage {
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
	return lineage{}
}

// lives reports whether the process is still there; one that was not found is taken to be.
func (l lineage) lives() bool {
	if l.pid == 0 {
		return true
	}
	now, ok := look(l.pid)
	return ok && now.start == l.start
}
