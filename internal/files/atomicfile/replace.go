package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrChanged is wrapped by the errors of [Replace] and [Remove] when somebody else has written the file meanwhile.
var ErrChanged = errors.New("the file has changed meanwhile")

// Replace puts text in the place of was, all at once and durably. Mode and owner stay, and a link stays one: what it leads to is
// written. When the file no longer holds was it stays as it is, and the error wraps [ErrChanged]; an empty was stands for an
// empty file or none, and a new one can be read by its owner only. Between the last look and the change there are some
// microseconds in which a writer that knows no locks can still be overwritten.
func Replace(path string, was, text []byte) error {
	path = target(path)
	model, err := os.Stat(path)
	if err != nil {
		model = nil // unchanged tells whether it should be there
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

// Remove removes a file that still holds was; of a link, the link. Otherwise it stays, and the error wraps [ErrChanged].
func Remove(path string, was []byte) error {
	err := unchanged(path, was)
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// unchanged looks whether a file still holds was.
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

// target is the file itself, where a link leads to it.
func target(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
