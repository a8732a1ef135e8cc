package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file atomically, with mode 0600. It is not synced to disk, which would cost milliseconds: after a
// loss of power the file may be empty or have its previous content.
func Write(path string, text []byte) error { return write(path, text, 0o600, false) }

// WriteDurably is [Write] for files that have to survive a loss of power.
func WriteDurably(path string, text []byte) error { return write(path, text, 0o600, true) }

// WriteForAll is [Write] for files that other users read.
func WriteForAll(path string, text []byte) error { return write(path, text, 0o644, false) }

// create writes a new file durably, with the mode and owner of model (nil: 0600, ours). If it is there already, the error wraps
// [fs.ErrExist].
func create(path string, model fs.FileInfo, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return fill(f, model, text, true)
}

func write(path string, text []byte, mode fs.FileMode, durable bool) error {
	temp, err := beside(path, nil, text, durable)
	if err == nil && mode != 0o600 {
		err = os.Chmod(temp, mode)
	}
	if err == nil {
		err = putInPlace(temp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if durable {
		syncFolder(filepath.Dir(path))
	}
	return nil
}

// beside writes a hidden file next to path, with the mode and owner of model (nil: 0600, ours), and returns its name.
func beside(path string, model fs.FileInfo, text []byte, durable bool) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return "", err
	}
	if err := fill(f, model, text, durable); err != nil {
		return "", err
	}
	return f.Name(), nil
}

// fill writes and closes a new file. On an error the file is removed.
func fill(f *os.File, model fs.FileInfo, text []byte, durable bool) error {
	_, err := f.Write(text)
	if err == nil && model != nil { // the owner first: changing it may clear bits of the mode
		if err = keepOwner(f, model); err == nil {
			err = f.Chmod(model.Mode().Perm())
		}
	}
	if err == nil && durable {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func putInPlace(temp, path string) error {
	err := Rename(temp, path)
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// syncFolder makes a rename durable. Errors are ignored: not every system can do it, and the file itself is complete.
func syncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// ErrChanged is wrapped by the errors of [Replace] and [Remove] when another program has changed the file in between.
var ErrChanged = errors.New("the file has changed meanwhile")

// Replace replaces the content was by text, atomically and durably. Mode and owner are kept; of a link the target is
// written. If the file's content is no longer was, the file is not changed, and the error wraps [ErrChanged]. An
// empty was means an empty file or none; a new file is readable by its owner only. Between the last check and the
// change there are some microseconds in which the write of a program without locks may be overwritten.
func Replace(path string, was, text []byte) error {
	path = target(path)
	model, err := os.Stat(path)
	if err != nil {
		model = nil // unchanged has checked whether it should exist
	}
	temp, err := beside(path, model, text, true)
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := unchanged(path, was); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("replace %s: %w", path, err)
	}
	if err := putInPlace(temp, path); err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	syncFolder(filepath.Dir(path))
	return nil
}

// Remove removes a file whose content is still was; for a link, the link itself. Otherwise nothing is removed, and
// the error wraps [ErrChanged].
func Remove(path string, was []byte) error {
	err := unchanged(path, was)
	if err == nil {
		err = remove(path)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// unchanged checks that a file's content is still was.
func unchanged(path string, was []byte) error {
	now, err := Read(path, int64(len(was)))
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(was) == 0:
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrTooLong):
		return ErrChanged
	case err != nil:
		return err
	case !bytes.Equal(now, was):
		return ErrChanged
	}
	return nil
}

// target resolves a link to the file itself.
func target(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
