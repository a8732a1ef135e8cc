package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// BackupSuffix is appended to the registry's name for the last good copy, which [Edit] writes.
const BackupSuffix = ".bak"

// lockSuffix is appended to the registry's name for the lock that writers hold.
const lockSuffix = ".lock"

// LockWait is how long [Edit] waits for another writer. An edit takes milliseconds.
const LockWait = 5 * time.Second

// ErrForeign is wrapped by the error about a PIV registry, which is not edited here.
var ErrForeign = errors.New("this is a PIV registry (version 1): its programs would lose what they do not know")

// ErrBusy is wrapped by the error about a lock that another writer has held for [LockWait].
var ErrBusy = errors.New("another program is writing it")

// Read reads a registry, and writes nothing. If the file does not exist the error wraps [os.ErrNotExist]; mistakes in
// it are [*fileerror.Problems].
func Read(path string, o Options) (*Registry, error) {
	text, err := piv.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	return Parse(path, text, o)
}

// Edit changes a registry, or creates one: change gets the present content, its result is checked, and the file is
// replaced at once. If the file has mistakes before or after, nothing is written. Concurrent edits do not lose each
// other's changes; if another program, such as an editor, writes in between, the edit is repeated on the new text.
func Edit(path string, o Options, now time.Time, change func(*Document) error) (*Registry, error) {
	lock := flock.New(path+lockSuffix, flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), LockWait)
	defer cancel()
	if locked, err := lock.TryLockContext(ctx, 20*time.Millisecond); !locked {
		if errors.Is(err, context.DeadlineExceeded) {
			err = ErrBusy
		}
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	defer lock.Close()
	const tries = 3
	for n := 1; ; n++ {
		r, err := editOnce(path, o, now, change)
		if !errors.Is(err, atomicfile.ErrChanged) || n == tries {
			return r, err
		}
	}
}

func editOnce(path string, o Options, now time.Time, change func(*Document) error) (*Registry, error) {
	was, err := piv.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		was = nil
	case err != nil:
		return nil, fmt.Errorf("edit registry: %w", err)
	case len(was) == 0:
		// PIV's writers truncate the file before they write it, so that an empty file may have content in a moment.
		return nil, fmt.Errorf("edit %s: it is empty: another program may be writing it; if not, remove it", path)
	}
	r, err := Parse(path, was, o)
	if err != nil {
		return nil, fmt.Errorf("edit a registry that has mistakes: nothing was written\n%w", err)
	}
	if r.Version == 1 {
		return nil, fmt.Errorf("edit %s: %w", path, ErrForeign)
	}
	d, err := newDocument(was)
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	if err := change(d); err != nil {
		return nil, err
	}
	text, err := d.doc.Text()
	if err != nil {
		return nil, err
	}
	if bytes.Equal(text, was) {
		return r, nil
	}
	if text, err = d.stamp(now); err != nil {
		return nil, err
	}
	r, err = Parse(path, text, o)
	if err != nil {
		return nil, fmt.Errorf("this change would leave a registry with mistakes: nothing was written\n%w", err)
	}
	if err := atomicfile.Replace(path, was, text); err != nil {
		return nil, fmt.Errorf("edit registry: %w", err)
	}
	if err := atomicfile.WriteDurably(path+BackupSuffix, text); err != nil {
		return r, fmt.Errorf("the registry is written, but not its copy: %w", err)
	}
	return r, nil
}

// stamp sets the time of the change, under the name that this registry has for it, and returns the text.
func (d *Document) stamp(now time.Time) ([]byte, error) {
	key := "updated"
	if d.doc.Root.At(written(d.doc.Root, []string{"last_updated"})...) != nil {
		key = "last_updated"
	}
	if err := d.set(tree.Raw(now.UTC().Format(time.RFC3339)), key); err != nil {
		return nil, err
	}
	return d.doc.Text()
}
