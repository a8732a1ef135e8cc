package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes a file atomically, with mode 0600. It is not synced to disk, which would cost milliseconds: after a
// loss of power the file may be empty or have its previous content.
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

// WriteDurably is [Write] for files that have to survive a loss of power.
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
