package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// ErrRunning is wrapped by the error of [Run] when the agent runs already: two of one name would interfere.
var ErrRunning = errors.New("it runs already")

// Times of a claim.
const (
	endingTime = 3 * time.Second // for a wrapper whose agent has ended: it may wait for a pipe, or for who has joined
	endingLook = 20 * time.Millisecond
)

// claim locks the agent of a report. It fails while another wrapper has the lock, and while the agent of a killed
// wrapper still lives. A wrapper whose agent has ended is waited for. The system releases the lock when we die.
func claim(path string) (*flock.Flock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(strings.TrimSuffix(path, filepath.Ext(path))+".lock", flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, err
	}
	last, readErr := Read(path)
	if !ok && readErr == nil && (last.Exit != nil || !lives(last.Process())) {
		ctx, cancel := context.WithTimeout(context.Background(), endingTime)
		defer cancel()
		if ok, err = lock.TryLockContext(ctx, endingLook); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		last, readErr = Read(path)
	}
	if !ok {
		if readErr != nil {
			return nil, ErrRunning
		}
		return nil, fmt.Errorf("%w, as process %d", ErrRunning, last.PID)
	}
	if readErr == nil && last.Exit == nil && lives(last.Process()) {
		return nil, errors.Join(fmt.Errorf("%w, as process %d, whose wrapper is gone: end it first", ErrRunning, last.PID), lock.Close())
	}
	return lock, nil
}

func lives(id process.Identity) bool {
	p, err := process.System{}.Look(id.PID)
	return err == nil && p.Identity == id
}

// write replaces a report atomically. It is not synced: after a power loss the agent is gone, too.
func write(path string, r Report) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return atomicfile.Write(path, append(text, '\n'))
}
