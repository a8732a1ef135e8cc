package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/agents/piv"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// BackupSuffix is behind the name of the last good copy, which is as new as the last [Edit].
const BackupSuffix = ".bak"

// lockSuffix is behind the name of the lock that writers hold.
const lockSuffix = ".lock"

// LockWait is how long [Edit] waits for another writer: an edit takes milliseconds.
const LockWait = 5 * time.Second

// ErrForeign is wrapped by the error about a PIV registry, which is not edited here.
var ErrForeign = errors.New("this is a PIV registry (version 1): its programs would lose what they do not know")

// ErrBusy is wrapped by the error about a lock that another writer has held for [LockWait].
var ErrBusy = errors.New("another program is writing it")

// Read reads a registry, and writes nothing. A file that is not there is an error that wraps [os.ErrNotExist]; one with
// mistakes is [*fileerror.Problems].
func Read(path string, o Options) (*Registry, error) {
	text, err := piv.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read registry: %w", err)
	}
	return Parse(path, text, o)
}

// Edit changes a registry, or makes a new one: change is called with what stands there, and what it leaves is checked and
// put in the file's place at once. With mistakes in the file before or after, nothing is written. Two edits at once do not
// lose each other's changes, and an edit that somebody's editor comes in between of is done again on the new text.
func Edit(path string, o Options, now time.Time, change func(*Draft) error) (*Registry, error) {
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

func editOnce(path string, o Options, now time.Time, change func(*Draft) error) (*Registry, error) {
	was, err := piv.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		was = nil
	case err != nil:
		return nil, fmt.Errorf("edit registry: %w", err)
	case len(was) == 0:
		// PIV's writers cut the file off before they write it: what is empty now may be full in a moment.
		return nil, fmt.Errorf("edit %s: it is empty: another program may be writing it; if not, remove it", path)
	}
	r, err := Parse(path, was, o)
	if err != nil {
		return nil, fmt.Errorf("edit a registry that has mistakes: nothing was written\n%w", err)
	}
	if r.Version == 1 {
		return nil, fmt.Errorf("edit %s: %w", path, ErrForeign)
	}
	d := &Draft{text: bytes.Clone(was)}
	if was == nil {
		d.text = []byte("version: 2\n")
	}
	if err := change(d); err != nil {
		return nil, err
	}
	if bytes.Equal(d.text, was) {
		return r, nil
	}
	stamp := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!timestamp", Value: now.UTC().Format(time.RFC3339)}
	if err := d.put([]string{d.updatedKey()}, stamp); err != nil {
		return nil, err
	}
	r, err = Parse(path, d.text, o)
	if err != nil {
		return nil, fmt.Errorf("this change would leave a registry with mistakes: nothing was written\n%w", err)
	}
	if err := atomicfile.Replace(path, was, d.text); err != nil {
		return nil, fmt.Errorf("edit registry: %w", err)
	}
	if err := atomicfile.WriteDurably(path+BackupSuffix, d.text); err != nil {
		return r, fmt.Errorf("the registry is written, but not its copy: %w", err)
	}
	return r, nil
}

// updatedKey is what this registry calls the time of its last change.
func (d *Draft) updatedKey() string {
	if document, err := load(d.text); err == nil && document != nil && index(document.Content[0], "last_updated") >= 0 {
		return "last_updated"
	}
	return "updated"
}
