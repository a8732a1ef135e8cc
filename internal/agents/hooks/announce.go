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

// Announce says that permission requests are answered here, until release is called or the process ends, however it
// ends. Without it no hook waits. It fails when somebody else answers already, after a second: a hook that looks takes
// the lock for an instant.
func Announce(ctx context.Context, dir string) (release func() error, err error) {
	if _, err := Prepare(dir); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	lock := flock.New(answeringPath(dir), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("announce that permission requests are answered: %w", err)
	}
	return lock.Close, nil
}

// Attended reports whether somebody answers permission requests.
func Attended(dir string) bool {
	if _, err := os.Lstat(answeringPath(dir)); err != nil {
		return false
	}
	lock := flock.New(answeringPath(dir), flock.SetPermissions(0o600))
	got, err := lock.TryRLock()
	_ = lock.Close()
	return err == nil && !got
}
