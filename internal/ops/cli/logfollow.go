package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/record/rotation"
)

// A followed log is checked this often, and its output settles after this quiet time.
const (
	followEvery = 100 * time.Millisecond
	settled     = 2 * time.Second
)

// copyLog copies a log that another process appends to, the rotated files first. It goes on while more says that something may come,
// until ctx ends. After a rotation it continues with the new file. settle is called after a quiet time; it may be nil.
func copyLog(ctx context.Context, out io.Writer, path string, more func() bool, settle func() error) error {
	for _, older := range rotation.Older(path) {
		if err := copyFile(out, older); err != nil {
			return err
		}
	}
	var file *os.File
	defer func() { _ = file.Close() }()     // nil is allowed
	last, open := time.Now(), settle != nil // when something came; whether that has yet to settle
	for {
		follow := more() // asked before the copy, which has all that was written until then
		next, n, err := copyNew(out, file, path)
		another := next != file
		file = next
		if err != nil {
			return fmt.Errorf("copy log: %w", err)
		}
		if n > 0 {
			last, open = time.Now(), settle != nil
		}
		if another && file != nil {
			continue
		}
		if !follow {
			return nil
		}
		if open && time.Since(last) >= settled {
			if err := settle(); err != nil {
				return err
			}
			open = false
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
}

// copyFile copies a rotated file; one that was cleared away meanwhile is passed over.
func copyFile(out io.Writer, path string) error {
	f, err := atomicfile.OpenShared(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer f.Close()
	if _, err := io.Copy(out, f); err != nil {
		return fmt.Errorf("copy log: %w", err)
	}
	return nil
}

// copyNew copies what is new in file, and returns the file to read next: another one after a rotation, nil while there is none.
func copyNew(out io.Writer, file *os.File, path string) (next *os.File, n int64, err error) {
	rotated := replaced(file, path)
	if file != nil {
		n, err = io.Copy(out, file) // also what came before it was rotated
	}
	if err != nil || !rotated {
		return file, n, err
	}
	_ = file.Close()
	if next, err = atomicfile.OpenShared(path, os.O_RDONLY, 0); errors.Is(err, fs.ErrNotExist) {
		return nil, n, nil
	}
	return next, n, err
}

// replaced reports whether the file at path is known to be another one than the one that is open. A path that cannot be looked at
// now is looked at again.
func replaced(file *os.File, path string) bool {
	if file == nil {
		return true
	}
	open, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && !os.SameFile(open, now)
}
