package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/batchfile"
)

// Start runs a command that outlives us, with nothing on its streams (PIV-9: detached, stdio ignored). Its token is in its
// environment: where the system tells that, what was started with it and could not be recorded is found again.
func (s System) Start(l Launch) (Identity, error) {
	if id, found := s.startedWith(l.Run); found {
		return id, nil
	}
	if len(l.Command) == 0 {
		return Identity{}, fmt.Errorf("start: no command")
	}
	if st, err := os.Stat(l.Dir); err != nil || !st.IsDir() {
		return Identity{}, fmt.Errorf("start %s: the project's directory %s is not there", l.Command[0], l.Dir)
	}
	cmd := exec.Command(l.Command[0], l.Command[1:]...)
	cmd.Dir = l.Dir
	cmd.Env = append(slices.Clone(l.Environ), "PWD="+l.Dir, RunVariable+"="+l.Run)
	cmd.SysProcAttr = detached
	err := batchfile.Prepare(cmd)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return Identity{}, fmt.Errorf("start %s: %w", strings.Join(l.Command, " "), err)
	}
	id := s.Identify(cmd.Process.Pid) // before it is reaped: its number is its own until then
	// Reaped here to avoid a zombie. Its heartbeat will show how it ended.
	go func() { _ = cmd.Wait() }()
	return id, nil
}

// startedWith finds the oldest living process that carries a token.
func (s System) startedWith(run string) (oldest Identity, found bool) {
	if !FindsStarts {
		return Identity{}, false
	}
	for _, p := range s.All() {
		if p.PID == os.Getpid() || !isOfRun(p.PID, []string{run}) {
			continue
		}
		if !found || p.Start < oldest.Start || p.Start == oldest.Start && p.PID < oldest.PID {
			oldest, found = p.Identity, true
		}
	}
	return oldest, found
}
