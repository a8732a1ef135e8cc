package child

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func (t *tree) save(s *SavedProcess) {
	if k := t.kept; k != nil {
		s.Kept, s.Channel, s.PIDFD, s.Slot, s.Spares = true, descriptor(k.channel), k.pidfd, k.slot, k.spares
	}
}

func (p *Process) restoreTree(s SavedProcess) (err error) {
	if !s.Kept {
		p.proc, err = os.FindProcess(s.PID)
		if err != nil {
			return fmt.Errorf("find process %d: %w", s.PID, err)
		}
		if p.tree.pidfd, err = unix.PidfdOpen(s.PID, 0); err != nil {
			p.tree.pidfd = -1
		}
		return nil
	}
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	if keeping.now == nil {
		return errNoKeeper
	}
	if keeping.slots == nil {
		keeping.slots = make(map[int]bool)
	}
	keeping.slots[s.Slot], keeping.slot = true, max(keeping.slot, s.Slot)
	p.tree.kept = &kept{line: keeping.now, channel: os.NewFile(uintptr(s.Channel), "keeper"), pidfd: s.PIDFD, slot: s.Slot, spares: s.Spares}
	return nil
}

// SaveKeeper returns the keeper that runs. No process may be started meanwhile.
func SaveKeeper() SavedKeeper {
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	l := keeping.now
	if l == nil || l.dead() {
		return SavedKeeper{}
	}
	return SavedKeeper{PID: l.proc.Pid, Line: descriptor(l.line), PIDFD: descriptor(l.pidfd)}
}

// RestoreKeeper goes on with the keeper of an earlier image of this program.
func RestoreKeeper(s SavedKeeper) error {
	if s.PID == 0 {
		return nil
	}
	proc, err := os.FindProcess(s.PID)
	if err != nil {
		return fmt.Errorf("find keeper %d: %w", s.PID, err)
	}
	keeping.mu.Lock()
	defer keeping.mu.Unlock()
	keeping.now = &keeperConn{
		line: os.NewFile(uintptr(s.Line), "keeper socket"), proc: proc, pidfd: os.NewFile(uintptr(s.PIDFD), "keeper"),
	}
	return nil
}
