package process

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/batchfile"
)

// start runs a command that outlives us, with nothing on its streams (PIV-9: detached, stdio ignored).
func start(l Launch) (int, error) {
	if len(l.Command) == 0 {
		return 0, fmt.Errorf("start: no command")
	}
	if st, err := os.Stat(l.Dir); err != nil || !st.IsDir() {
		return 0, fmt.Errorf("start %s: the project's directory %s is not there", l.Command[0], l.Dir)
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
		return 0, fmt.Errorf("start %s: %w", strings.Join(l.Command, " "), err)
	}
	pid := cmd.Process.Pid
	// Reaped here to avoid a zombie. Its heartbeat will show how it ended.
	go func() { _ = cmd.Wait() }()
	return pid, nil
}
