//go:build unix

package notify

import (
	"os/exec"
	"syscall"
)

// alone puts the program into a group of its own, which is ended as one.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// The leader has not been waited for yet, so the number is still the group's.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
