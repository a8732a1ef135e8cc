package monitor

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// RunningError says that another monitor runs in this home.
type RunningError struct {
	PID int // 0: it has not said
}

// Error names the other one.
func (e *RunningError) Error() string {
	if e.PID == 0 {
		return "another monitor is running"
	}
	return fmt.Sprintf("another monitor is running (PID %d)", e.PID)
}

// lock is the right to act on a home. The system's file lock decides, and is released however we end; the PID file
// (PIV-15) informs people and monitors of other makes.
type lock struct {
	flock   *flock.Flock
	pidFile string
}

func takeLock(pidFile string, procs processes) (*lock, error) {
	f := flock.New(pidFile+".lock", flock.SetPermissions(0o600))
	got, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.Path(), err)
	}
	if !got {
		pid, _ := readPID(pidFile)
		return nil, errors.Join(&RunningError{pid}, f.Close())
	}
	if pid := otherMonitor(pidFile, procs); pid != 0 {
		return nil, errors.Join(&RunningError{pid}, f.Close())
	}
	was, err := piv.ReadFile(pidFile)
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = atomicfile.Replace(pidFile, was, []byte(strconv.Itoa(os.Getpid())+"\n"))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("PID file: %w", err), f.Close())
	}
	return &lock{f, pidFile}, nil
}

// otherMonitor is the PID of a living monitor that wrote the PID file but takes no lock: the original PIV supervisor. A
// process younger than the file did not write it.
func otherMonitor(pidFile string, procs processes) int {
	pid, written := readPID(pidFile)
	if pid <= 1 || pid == os.Getpid() { // 1: it was the first process of a container
		return 0
	}
	p, err := procs.Look(pid)
	switch {
	case errors.Is(err, os.ErrProcessDone):
		return 0
	case err == nil && time.Now().Add(-p.Age).After(written.Add(time.Second)):
		return 0
	}
	return pid
}

func readPID(pidFile string) (pid int, written time.Time) {
	text, err := piv.ReadFile(pidFile)
	if err != nil {
		return 0, written
	}
	if st, err := os.Stat(pidFile); err == nil {
		written = st.ModTime()
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid < 0 {
		return 0, written
	}
	return pid, written
}

// holder is the PID of the monitor of a home; 0 if there is none.
func holder(pidFile string) int {
	f := flock.New(pidFile+".lock", flock.SetPermissions(0o600))
	if _, err := os.Stat(f.Path()); err != nil {
		return 0
	}
	got, err := f.TryRLock()
	if err = errors.Join(err, f.Close()); err != nil || got {
		return 0
	}
	pid, _ := readPID(pidFile)
	return pid
}

// release removes the PID file. The lock file stays: a process that has opened it already would otherwise lock a deleted
// file.
func (l *lock) release() error {
	err := os.Remove(l.pidFile)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.flock.Close())
}
