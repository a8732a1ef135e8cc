package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts a file in its place, for its owner's eyes only (0600). It is not made durable, which costs milliseconds: after a loss
// of power the file may be the one before, or empty.
func Write(path string, text []byte) error {
	temp, err := beside(path, nil, text, false)
	if err == nil {
		err = putInPlace(temp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteDurably is [Write] for what has to survive a loss of power.
func WriteDurably(path string, text []byte) error {
	temp, err := beside(path, nil, text, true)
	if err == nil {
		err = putInPlace(temp, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	syncFolder(filepath.Dir(path))
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

// fill writes and closes a new file, which is gone if it cannot be written whole.
func fill(f *os.File, model fs.FileInfo, text []byte, durable bool) error {
	_, err := f.Write(text)
	if err == nil && model != nil { // the owner first: giving a file away may take bits from its mode
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
	err := os.Rename(temp, path)
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// syncFolder makes a rename durable. Not every system can, and the file itself is whole in any case.
func syncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
