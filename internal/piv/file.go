package piv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// ErrChanged is wrapped by the error of [Replace] when somebody else has written the file meanwhile.
var ErrChanged = errors.New("the file has changed meanwhile")

// ReadFile reads a file of at most [SizeLimit] bytes. It does not follow what is no ordinary file: a pipe in its place
// would hold the reader up.
func ReadFile(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: no ordinary file: %w", path, ErrBroken)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, SizeLimit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

// Replace puts text in place of was, all at once and durably: a reader sees the one or the other, also after a loss of
// power. When the file no longer holds was it stays as it is, and the error wraps [ErrChanged]; was nil stands for no file.
// Between the last look and the change there are some microseconds in which a writer that knows no locks can still be
// overwritten.
func Replace(path string, was, text []byte) error {
	mode := os.FileMode(0o600)
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode().Perm()
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // the link stays one
	}
	temp, err := writeTemp(path, mode, text)
	if err != nil {
		return fmt.Errorf("replace %s: %w", path, err)
	}
	now, err := ReadFile(path)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
	case !bytes.Equal(now, was):
		err = ErrChanged
	default:
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("replace %s: %w", path, err)
	}
	syncDir(filepath.Dir(path))
	return nil
}

// WriteNew writes a file that does not exist yet, durably.
func WriteNew(path string, text []byte) error {
	temp, err := writeTemp(path, 0o600, text)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("write %s: %w", path, err)
	}
	syncDir(filepath.Dir(path))
	return nil
}

func writeTemp(path string, mode os.FileMode, text []byte) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// syncDir makes a rename durable. Not every system can, and the file itself is whole in any case.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
