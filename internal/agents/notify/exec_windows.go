package notify

import (
	"os/exec"
	"syscall"
)

// alone keeps our console's Ctrl-C from the program. Only it is ended, not its descendants.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
