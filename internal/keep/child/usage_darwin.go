package child

import (
	"errors"
	"fmt"
)

// TreeUsage is not supported: memory and times of other processes need libproc, which golang.org/x/sys does not have.
func TreeUsage(pid int) (Usage, error) {
	return Usage{}, fmt.Errorf("usage of process %d: %w", pid, errors.ErrUnsupported)
}
