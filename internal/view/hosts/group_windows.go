package hosts

import "os/exec"

// inGroup leaves the command as it is: its end closes the pipes of what it has started.
func inGroup(cmd *exec.Cmd) *exec.Cmd { return cmd }
