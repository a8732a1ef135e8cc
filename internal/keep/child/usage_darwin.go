package child

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// TreeUsage is not supported: memory and times of other processes need libproc, which golang.org/x/sys does not have.
func TreeUsage(pid int) (Usage, error) {
	return Usage{}, fmt.Errorf("usage of process %d: %w", pid, ErrUnsupported)
}

// Continue sends SIGCONT to the process group that pid leads. It returns an error that wraps [os.ErrProcessDone] when
// there is no such group. The leader must not have been reaped.
func Continue(pid int) error {
	if pid <= 1 { // the kernel would signal every process, or us
		return fmt.Errorf("continue process group %d: %w", pid, os.ErrInvalid)
	}
	if err := unlessEnded(pid, killGroup(pid, unix.SIGCONT)); err != nil {
		return fmt.Errorf("continue process group %d: %w", pid, err)
	}
	return nil
}
