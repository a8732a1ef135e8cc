//go:build unix

package proc

import (
	"fmt"
	"syscall"
)

// Kill sends SIGKILL to one process. A number that is not above 0 is an error: it means a group of processes, mostly the caller's
// own, or all there are.
func Kill(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("kill %d: no process has this number", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %d: %w", pid, err)
	}
	return nil
}
