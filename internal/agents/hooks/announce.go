package hooks

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

func answeringPath(dir string) string { return filepath.Join(dir, "answering.lock") }

// Announce declares that this process answers permission requests, until release is called or the process ends in any
// way. Without it no hook waits. It fails after a second if another process answers already; it waits that long
// because hooks that check take the lock for a moment.
func Announce(ctx context.Context, dir string) (release func() error, err error) {
	if _, err := Prepare(dir); err != nil {
		return nil, err
	}
	lock, err := hold(ctx, answeringPath(dir))
	if err != nil {
		return nil, fmt.Errorf("announce that permission requests are answered: %w", err)
	}
	return lock.Close, nil
}

// Attended reports whether a process answers permission requests.
func Attended(dir string) bool { return isHeld(answeringPath(dir)) }

// hold takes the lock of a file, for as long as this process lives. One that asks with [isHeld] has it for a moment.
func hold(ctx context.Context, path string) (*flock.Flock, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock := flock.New(path, flock.SetPermissions(0o600))
	_, err := lock.TryLockContext(ctx, 5*time.Millisecond)
	return lock, err
}

// isHeld reports whether a process holds the lock of a file.
func isHeld(path string) bool {
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	lock := flock.New(path, flock.SetPermissions(0o600))
	got, err := lock.TryRLock()
	_ = lock.Close()
	return err == nil && !got
}
