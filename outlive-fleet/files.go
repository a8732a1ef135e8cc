package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
)

const (
	fileVersion = 1
	fileLimit   = 16 << 20
)

// readFile reads one of our files; false: there is none.
func readFile[T any](path string, into *T) (bool, error) {
	text, err := atomicfile.Read(path, fileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var v struct {
		Version int `json:"version"`
	}
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err == nil {
		err = stateversion.Check(path, v.Version, fileVersion)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

// writeFile writes one of our files, which nobody else can read.
func writeFile(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := atomicfile.WriteDurably(path, append(text, '\n')); err != nil {
		return err
	}
	return os.Chmod(path, 0o600)
}

// forgetFile removes a file, if there is one.
func forgetFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lock waits for a lock, and has it until unlock is called.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	one := flock.New(path, flock.SetPermissions(0o600))
	if err := one.Lock(); err != nil {
		return nil, err
	}
	return func() { _ = one.Unlock() }, nil
}

// hold takes a lock for as long as the process lives, or says that another one has it.
func hold(path, what string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(path, flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	switch {
	case err != nil:
		return nil, err
	case !held:
		return nil, fmt.Errorf("%s runs already, with the state directory %s", what, filepath.Dir(path))
	}
	return func() { _ = lock.Unlock() }, nil
}
