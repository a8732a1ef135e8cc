//go:build unix

package hosts

import (
	"os/exec"
	"syscall"
)

// inGroup gives a command a process group of its own, which ends as a whole: a jump host's ssh would stay behind.
func inGroup(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	return cmd
}
