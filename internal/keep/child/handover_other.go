//go:build !linux

package child

import (
	"fmt"
	"os"
)

func (t *tree) save(*SavedProcess) {}

// restoreTree: where there is no keeper the process is our own child, in this image as in the earlier one.
func (p *Process) restoreTree(s SavedProcess) (err error) {
	p.proc, err = os.FindProcess(s.PID)
	if err != nil {
		return fmt.Errorf("find process %d: %w", s.PID, err)
	}
	p.tree.adopt(p.proc)
	return nil
}

// SaveKeeper returns none: there is no keeper here.
func SaveKeeper() SavedKeeper { return SavedKeeper{} }

// RestoreKeeper does nothing: there is no keeper here.
func RestoreKeeper(SavedKeeper) error { return nil }
